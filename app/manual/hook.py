"""What MkDocs is told beyond mkdocs.yml: the pages that are made of records stand in the menu by their groups."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from app.manual import folder
from app.manual.records import pages_by_section, questions_by_group
from app.menu import Page

SCRIPT = "matrix-unit.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add questions and pages to the menu."""
    for section in config.nav or []:
        if "Questions" in section:
            section["Questions"] += [{h: [_file(p) for p in told]} for h, told in questions_by_group().items()]
        if "Pages" in section:
            for head, pages in pages_by_section().items():
                section["Pages"] += [{head: [_file(p) for p in pages]}] if head else [_file(p) for p in pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the scripts that pages load: they stand here, where scripts are checked."""
    files.append(File.generated(config, SCRIPT, abs_src_path=str(Path(__file__).with_name("matrix_unit.js"))))
    return files


def _file(page: Page) -> str:
    return f"{folder(page)}/{page.name}.md"
