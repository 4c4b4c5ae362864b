"""Does a test fail when the code is wrong? Each small change of a module is tried against the tests that reach it.

`make mutants ARGS=analyzers/device/overlap.py` (or `python -m tests.mutants FILE ...`). Tests are collected once, in
this process; of every change a fork of it runs the tests that reach the changed line, quickest first, to the first that
fails. A change that no test notices has survived: it is printed with its line. mutmut was tried: at
seconds a change, for some 500 changes of a module of 240 lines (every name, argument and string), one module takes the
better part of an hour. Here are only changes that make a number or a choice another, some 100 of such a module.

Which tests belong to a module is said in pyproject.toml, `[tool.mutants]`; else those of its package that import it.
Compiled kernels are left alone. Of a line that no test reaches all changes are printed as not run. The exit code is 0
however many survive: what to do about one is for a person to judge.
"""

import argparse
import ast
import contextlib
import copy
import gc
import json
import os
import re
import signal
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, is_hypothesis_test, settings

ROOT = Path(__file__).resolve().parents[1]
_SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps what `@settings` said
PHASES = (Phase.explicit, Phase.generate)  # a failure is enough: it need not be made small
EXAMPLES = 100  # of a property, for each change
QUICK_S = 2.0  # tests that take more of a processor are left out, unless --all is asked
SHORTEST_S = 20  # a change is given this long, and ten times what its tests take unchanged: then it counts as noticed
PLAIN = (int, float, str, tuple, frozenset, dict, bool, re.Pattern)
OTHER = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"first": "last", "last": "first", "ffill": "bfill", "idxmin": "idxmax", "idxmax": "idxmin", "gt": "ge"}
SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Mutant:
    """One change: the changed module's code, its line, what it was and is, and the lines whose tests can notice it."""

    code: CodeType
    line: int
    was: str
    now: str
    reach: range | None  # None: lines that run when the module is imported


def changes(node: ast.AST) -> Iterator[Callable[[Any], Any]]:
    """What may be done to a copy of this node; each hands back the node that takes its place."""

    def negated(n):
        return ast.UnaryOp(ast.Not(), n)

    def set_op(n):
        n.op = OTHER[type(n.op)]()
        return n

    match node:
        case ast.Compare(ops=[only]) if type(only) in OTHER:
            yield lambda n: (setattr(n, "ops", [OTHER[type(only)]()]), n)[1]
        case ast.BinOp(left=ast.Constant(value=str())) | ast.BinOp(right=ast.Constant(value=str())):
            return
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in OTHER:
            yield set_op
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield lambda n: n.operand
        case ast.Constant(value=bool()):
            yield lambda n: ast.Constant(not n.value)
        case ast.Constant(value=int() | float()):
            yield lambda n: ast.Constant(n.value + 1)
        case ast.Constant(value="left" | "right"):
            yield lambda n: ast.Constant(SIDES[n.value])
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield lambda n: ast.Name(NAMES[n.id], ast.Load())
        case ast.Attribute(attr=name) if name in NAMES:
            yield lambda n: (setattr(n, "attr", NAMES[n.attr]), n)[1]
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if isinstance(test, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
                yield lambda n: (setattr(n, "test", negated(n.test)), n)[1]
        case ast.Continue():
            yield lambda n: ast.Break()
        case ast.Expr(value=ast.Call()):
            yield lambda n: ast.Pass()


def compiled(node: ast.AST) -> bool:
    """Whether this is a kernel that Numba compiles: what is changed of it in Python changes nothing."""
    marks = getattr(node, "decorator_list", ()) if isinstance(node, ast.FunctionDef) else ()
    return any(re.search(r"\b(?:kernel|part|n?jit)\b", ast.unparse(mark)) for mark in marks)


def places(node: ast.AST, statement: ast.stmt | None, inside: bool) -> Iterator[tuple[Any, str, int | None, Any, bool]]:
    """Every node with its parent's field (and place in it), its statement, and whether a function holds it."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or compiled(child):
                continue
            held = child if isinstance(child, ast.stmt) else statement
            within = inside or (isinstance(node, ast.FunctionDef) and field == "body")
            yield node, field, at, held, within
            yield from places(child, held, within)


def mutants(file: Path) -> Iterator[Mutant]:
    """Every change of a module, one at a time, compiled."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for parent, field, at, statement, inside in list(places(tree, None, False)):
        holder, where = (vars(parent), field) if at is None else (getattr(parent, field), at)
        node = holder[where]
        for change in changes(node):
            new = ast.copy_location(change(copy.deepcopy(node)), node)
            holder[where] = ast.fix_missing_locations(new)
            code = compile(tree, str(file), "exec")
            holder[where] = node
            body = getattr(statement, "body", None)
            last = body[0].lineno - 1 if body else statement.end_lineno
            reach = range(statement.lineno, max(last, statement.lineno) + 1) if inside else None
            yield Mutant(code, node.lineno, *said(node, new), reach)


def said(was: Any, now: Any) -> tuple[str, str]:
    if isinstance(was, ast.If | ast.While | ast.IfExp):
        was, now = was.test, now.test
    return ast.unparse(was)[:90], ast.unparse(now)[:90]


def codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from codes(const)


def key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


class Runner:
    """A pytest plugin that, in place of the tests' run, runs them once for every mutant, in forks."""

    def __init__(self, file: Path, longest_s: float) -> None:
        self.longest_s = longest_s
        self.file, self.name = file, ".".join(file.relative_to(ROOT).with_suffix("").parts)
        self.path = file.relative_to(ROOT).as_posix()
        self.rows: list[str] = []
        self.out = os.fdopen(os.dup(1), "w", buffering=1)  # pytest takes standard output for itself

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items, self.functions = session.items, self._functions()
        for item in self.items:
            if is_hypothesis_test(test := getattr(item, "obj", None)):
                said = getattr(test, _SETTINGS, None) or settings.default
                most = min(said.max_examples, EXAMPLES)
                setattr(test, _SETTINGS, settings(said, max_examples=most, phases=PHASES, database=None))
        self.reached = self._forked(self._watched, 3600)
        if self.reached is None or any(failed for failed, _, _ in self.reached):
            raise SystemExit(f"{self.name}: its tests do not pass as they are")
        for mutant in mutants(self.file):
            chosen = self._chosen(mutant)
            limit = SHORTEST_S + round(10 * sum(self.reached[k][1] for k in chosen))
            caught = self._forked(lambda m=mutant, c=chosen: self._try(m, c), limit) if chosen else [False]
            self.rows.append("not run" if not chosen else "survived" if caught == [False] else "killed")
            if self.rows[-1] != "killed":
                self._say(f"{self.path}:{mutant.line}: {self.rows[-1]}: {mutant.was}  ->  {mutant.now}")
        return True

    def _say(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def _functions(self) -> dict[tuple[str, int], list[FunctionType]]:
        found: dict[tuple[str, int], list[FunctionType]] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename == str(self.file):
                found.setdefault(key(one.__code__), []).append(one)
        return found

    def _forked(self, work: Callable[[], Any], limit_s: int) -> Any:
        """What `work` gives in a process of its own; None where it ended otherwise, or took longer."""
        readable, writable = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                os.close(readable)
                signal.alarm(limit_s)
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                said = json.dumps(work()).encode()
                with os.fdopen(writable, "wb") as pipe:
                    pipe.write(said)
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return json.loads(text) if text else None

    def _passes(self, item: pytest.Item) -> bool:
        reports = []

        class Listener:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                reports.append(report)

        listener = Listener()
        item.config.pluginmanager.register(listener)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        item.config.pluginmanager.unregister(listener)
        return not any(r.failed for r in reports)

    def _watched(self) -> list[tuple[bool, float, list[int]]]:
        """Of each test: whether it fails unchanged, how long it takes, and which lines of the module it reaches."""
        name, lines = str(self.file), set()

        def local(frame, event, _):
            lines.add(frame.f_lineno)
            return local

        def begins(frame, event, _):
            return local(frame, event, _) if frame.f_code.co_filename == name else None

        found = []
        for item in self.items:
            lines.clear()
            began = time.process_time()
            threading.settrace(begins)
            sys.settrace(begins)
            passed = self._passes(item)
            sys.settrace(None)
            found.append((not passed, time.process_time() - began, sorted(lines)))
        return found

    def _chosen(self, mutant: Mutant) -> list[int]:
        reach = mutant.reach
        able = [
            k
            for k, (_, spent, lines) in enumerate(self.reached)
            if spent <= self.longest_s and (reach is None or any(n in reach for n in lines))
        ]
        return sorted(able, key=lambda k: self.reached[k][1])

    def _try(self, mutant: Mutant, chosen: list[int]) -> list[bool]:
        for one in codes(mutant.code):
            for function in self.functions.get(key(one), ()):
                function.__code__ = one
        if mutant.reach is None:
            self._import_again(mutant.code)
        return [not all(self._passes(self.items[k]) for k in chosen)]

    def _import_again(self, code: CodeType) -> None:
        """Constants and defaults as the changed module has them, wherever they were imported."""
        old = vars(sys.modules[self.name])
        new = dict(old)
        exec(code, new)
        for name, value in new.items():
            was = old.get(name)
            if isinstance(value, FunctionType) and isinstance(was, FunctionType):
                was.__defaults__, was.__kwdefaults__ = value.__defaults__, value.__kwdefaults__
            elif isinstance(value, PLAIN) and value != was:
                for module in list(sys.modules.values()):
                    if getattr(module, "__dict__", {}).get(name) is was:
                        setattr(module, name, value)


def tests_of(file: Path) -> list[str]:
    """The test files that belong to a module, as pyproject.toml says, else those of its package that import it."""
    path = file.relative_to(ROOT)
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]
    if found := listed.get(path.as_posix()):
        return [str(ROOT / "tests" / one) for one in found]
    parts = path.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    told = re.compile(
        rf"^(?:from {re.escape('.'.join(parts))} import|import {re.escape('.'.join(parts))}\b"
        rf"|from {re.escape('.'.join(parts[:-1]))} import .*\b{parts[-1]}\b)",
        re.MULTILINE,
    )
    files = sorted((ROOT / "tests" / parts[0]).glob("test_*.py"))
    return [str(one) for one in files if told.search(one.read_text(encoding="utf-8"))]


def one_module(file: Path, longest_s: float) -> None:
    tests = tests_of(file)
    if not tests:
        raise SystemExit(
            f"{file.relative_to(ROOT)}: no test imports it; name its tests in pyproject.toml, [tool.mutants]"
        )
    runner = Runner(file, longest_s)
    options = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal"]
    options += ["-m", "not slow"] if longest_s < float("inf") else []
    pytest.main([*options, *tests], [runner])
    counts = ", ".join(f"{sum(h == how for h in runner.rows)} {how}" for how in ("killed", "survived", "not run"))
    print(f"{runner.path}: {len(runner.rows)} mutants: {counts}", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description="Try small changes of modules against their tests.")
    asked.add_argument("files", nargs="+", type=Path, help="modules, such as analyzers/device/overlap.py")
    asked.add_argument("--all", action="store_true", help=f"also the tests that take more than {QUICK_S:g} s")
    args = asked.parse_args()
    for file in args.files:
        if child := os.fork():  # one process a module: what one imports is none of the next's
            os.waitpid(child, 0)
        else:
            one_module(file.resolve(), float("inf") if args.all else QUICK_S)
            os._exit(0)


if __name__ == "__main__":
    main()
