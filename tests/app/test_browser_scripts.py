"""Scripts of components: true modules in files, joined into the one text that Streamlit takes."""

from pathlib import Path

import pytest

from app.components.browser import script

APP = Path(__file__).parents[2] / "app"
MAIN = 'import { a } from "./a.js";\n\nexport default function () {\n  return a();\n}\n'


def made(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text)
    return folder / "main.js"


def test_a_module_that_two_import_is_there_once_and_before_both(tmp_path):
    shared = "export const shared = 1;\n"
    a = 'import { shared } from "./shared.js";\nexport const a = () => shared;\n'
    main = 'import { shared } from "./shared.js";\n' + MAIN
    text = script(made(tmp_path, main=main, a=a, shared=shared))
    assert text.count("const shared = 1;") == 1
    assert text.index("const shared = 1;") < text.index("const a = ") < text.index("export default")
    assert "import" not in text


def test_names_of_a_module_that_it_does_not_export_meet_no_others(tmp_path):
    a = "const own = 1;\nexport function a() { return own; }\n"
    text = script(made(tmp_path, main="const own = 2;\n" + MAIN, a=a))
    assert "(() => {\nconst own = 1;" in text and text.rstrip().startswith("const module0")
    assert "return { a };\n})();" in text and "const { a } = module0;" in text


@pytest.mark.parametrize(
    ("a", "said"),
    [
        ('import { b } from "./b.js";\nexport const a = () => b;\n', "imports itself"),
        ("export const other = 1, a = 2;\n", "exports no a"),
        ("const a = 1;\nexport { a };\n", "not known"),
        ('import * as all from "./b.js";\nexport const a = all;\n', "not known"),
        ("export const a = 1;\nexport default a;\n", "not known"),
    ],
)
def test_what_cannot_be_joined_is_said_at_once(tmp_path, a, said):
    b = 'import { a } from "./a.js";\nexport const b = () => a;\n'
    with pytest.raises(ValueError, match=said):
        script(made(tmp_path, main=MAIN, a=a, b=b))


def test_every_script_of_a_component_joins_and_lies_beside_its_css_and_html():
    mains = [p for p in APP.rglob("*.js") if "\nexport default function" in p.read_text()]
    assert len(mains) >= 5
    for main in mains:
        assert "export default function" in script(main), main
        assert main.with_suffix(".css").is_file() and main.with_suffix(".html").is_file(), main


def test_components_are_made_of_files_in_one_place_alone():
    made_in = [p.relative_to(APP) for p in APP.rglob("*.py") if "components.v2.component(" in p.read_text()]
    assert made_in == [Path("components/browser.py")]
    assert not [p for p in APP.rglob("*.py") if "<script" in p.read_text()]
