"""What a sealed job that reads files says to the registry: these statements, letter by letter, and no other.

Texts of SQL can be written in more ways than anybody can forbid. A test has real ingests say what they need; where a
book's statement changes, its line here does.
"""

from functools import cache

from runs.database import put

_READ = (
    # whose additions a run has: `Registry`
    "select stands_for from stands where run_id = ?",
    # who sees a run: `ShareBook`
    "select team from shared where run_id = ?",
    "select distinct team from shared order by team",
    "select mark from share_mark",
    # what is watched for: `AlertBook`
    "select rule, threshold from alert_rules order by rule",
    "select 1 from alert_rules where rule = ?",
    "select until_ns, stored_ns from alert_moments where rule = ? and subject = ?",
    "select 1 from alerts where rule = ? and subject = ? and resolved_ns is null",
)
_CHANGED = (
    put("files", "sha256", "path, bytes"),
    "insert into shared values (?, ?, ?, ?) on conflict do nothing",
    "insert into share_mark values (1, ?) on conflict do nothing",
    put("alert_moments", "rule, subject", "until_ns, stored_ns"),
    "insert into alerts (rule, subject, run_id, name, value, threshold, sentence, opened_ns) "
    "values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
    "update alerts set run_id = ?, name = ?, value = ?, threshold = ?, sentence = ? "
    "where rule = ? and subject = ? and resolved_ns is null",
    "update alerts set resolved_ns = ?, resolved_sentence = ?, run_id = ? "
    "where rule = ? and subject = ? and resolved_ns is null",
)


@cache
def statements() -> frozenset[str]:
    from runs import registry as of  # late: it imports what opens a registry

    told = (of.TAGS, of.NOTES, of.PRICES, of.STANDS, of.NAMES, of.DECLARED)  # of one run: it looks at no other
    return frozenset((*_READ, *(of.of_one(asked) for asked in told), of.of_one(of.EARLIER, "and"), *_CHANGED))


@cache
def keys() -> frozenset[int]:
    """The locks of the books that say them."""
    from runs.alert_book import AlertBook
    from runs.postgres.sql import lock_key
    from runs.registry_schema import REGISTRY_SCHEMA

    return frozenset(lock_key(schema) for schema in (REGISTRY_SCHEMA, AlertBook.SCHEMA))
