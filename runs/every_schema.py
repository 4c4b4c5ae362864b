"""The tables of all books: what a registry holds. A new book is added here; a test walks all that there are."""

from runs import (
    alert_book,
    audit_book,
    baseline_book,
    budget_book,
    demo_runs,
    digest_book,
    dismissals,
    job_book,
    live_book,
    login_book,
    promise_book,
    token_book,
    upload_book,
)
from runs.registry_schema import REGISTRY_SCHEMA

SCHEMAS: tuple[str, ...] = (
    REGISTRY_SCHEMA,
    alert_book.AlertBook.SCHEMA,
    audit_book.AuditBook.SCHEMA,
    baseline_book.BaselineBook.SCHEMA,
    budget_book.BudgetBook.SCHEMA,
    demo_runs.DemoRuns.SCHEMA,
    digest_book.DigestBook.SCHEMA,
    dismissals.Dismissals.SCHEMA,
    job_book.JobBook.SCHEMA,
    live_book.LiveBook.SCHEMA,
    login_book.LoginBook.SCHEMA,
    promise_book.PromiseBook.SCHEMA,
    token_book.TokenBook.SCHEMA,
    upload_book.UploadBook.SCHEMA,
)
