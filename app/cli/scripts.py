"""What a shell runs to complete `chipledger`. Each asks `chipledger completion SHELL WORDS...`, whose lines are a word
and, after a tab, what it is; the line `:files` alone stands for the shell's own completion of files.

The command is called as it was typed, so that one in a virtual environment is completed without being on the path.
"""

BASH = r"""# Completion of chipledger in bash. For every session:
#   mkdir -p ~/.local/share/bash-completion/completions
#   chipledger completion bash > ~/.local/share/bash-completion/completions/chipledger
# or for this one: source <(chipledger completion bash)
_chipledger() {
    local line cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
        elif [[ $cur == [\"\']* ]]; then
            COMPREPLY+=("${line%%$'\t'*}")
        else
            COMPREPLY+=("$(printf %q "${line%%$'\t'*}")")
        fi
    done < <("$1" completion bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _chipledger chipledger
"""

ZSH = r"""#compdef chipledger
# Completion of chipledger in zsh. For every session, in a folder of $fpath, before compinit runs:
#   chipledger completion zsh > ~/.zfunc/_chipledger
# or for this one: source <(chipledger completion zsh)
_chipledger() {
    local line files
    local -a names shown ending
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            files=1
        else
            names+=("${line%%$'\t'*}")
            shown+=("${line/$'\t'/  -- }")
        fi
    done < <("${(Q)words[1]}" completion zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    if (( ${#names} == 1 )) && [[ $names[1] == *= ]]; then ending=(-S '') fi
    (( ${#names} )) && compadd "${ending[@]}" -l -d shown -a names
    [[ -n $files ]] && _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _chipledger "$@"; else compdef _chipledger chipledger; fi
"""

FISH = r"""# Completion of chipledger in fish. For every session:
#   chipledger completion fish > ~/.config/fish/completions/chipledger.fish
# or for this one: chipledger completion fish | source
function __chipledger_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in ($before[1] completion fish $before[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c chipledger -f -a '(__chipledger_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
