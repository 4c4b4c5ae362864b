"""The registry's tables: what people added to runs and said of them, and what is kept of runs for their list.

`changes` counts every change to a table that a list of runs shows, and `touched` has a row for each run of which
anything there ever changed, the last one last: who keeps a list of a million reads what is new of it. Triggers do it,
so that a program of an earlier version is counted too. `glimpses` is not counted: it follows from the runs and may be
thrown away.
"""

_TABLES = """
create table if not exists tags (run_id text not null, key text not null, value text not null,
    primary key (run_id, key)) without rowid;
create table if not exists notes (id integer primary key, run_id text not null, written_ns integer not null,
    text text not null);
create table if not exists note_marks (id integer primary key, who text not null, edited_ns integer);
create table if not exists prices (run_id text primary key, usd_per_chip_hour real not null,
    written_ns integer not null) without rowid;
create table if not exists names (run_id text primary key, name text not null, who text not null,
    written_ns integer not null) without rowid;
create table if not exists renames (id integer primary key, run_id text not null, name text, who text not null,
    written_ns integer not null);
create table if not exists declared (run_id text not null, key text not null, value text not null, who text not null,
    written_ns integer not null, primary key (run_id, key)) without rowid;
create table if not exists declared_log (id integer primary key, run_id text not null, key text not null, value text,
    who text not null, written_ns integer not null);
create table if not exists stands (run_id text primary key, stands_for text not null) without rowid;
create table if not exists shelved (run_id text primary key, starred integer not null default 0,
    archived integer not null default 0, project text not null default '', experiment text not null default '')
    without rowid;
create table if not exists binned (run_id text primary key, name text not null, who text not null,
    binned_ns integer not null) without rowid;
create table if not exists searches (name text primary key, query text not null, columns text not null,
    sort text not null, who text not null, written_ns integer not null) without rowid;
create table if not exists shared (run_id text not null, team text not null, who text not null,
    written_ns integer not null, primary key (run_id, team)) without rowid;
create table if not exists share_mark (one integer primary key check (one = 1), mark text not null);
create table if not exists usual_teams (who text primary key, team text not null) without rowid;
create table if not exists files (sha256 text primary key, path text not null, bytes integer not null) without rowid;
create table if not exists glimpses (run_id text primary key, key text not null, told text not null) without rowid;
create table if not exists changes (one integer primary key check (one = 1), count integer not null);
create table if not exists timeline_marks (id integer primary key, run_id text not null, text text not null,
    who text not null, written_ns integer not null, place text not null);
create index if not exists marks_by_run on timeline_marks (run_id);
create index if not exists notes_by_run on notes (run_id);
create index if not exists declared_by_run on declared_log (run_id);
create index if not exists renames_by_run on renames (run_id);
create table if not exists touched (id integer primary key autoincrement, run_id text not null);
create index if not exists touched_by_run on touched (run_id);
"""
_COUNTED = ("tags", "notes", "prices", "names", "declared", "stands", "shelved", "shared")
_TRIGGER = """
create trigger if not exists {table}_{how} after {how} on {table} begin
    insert into changes select 1, 0 where not exists (select 1 from changes);
    update changes set count = count + 1;
end;
"""
_TOUCHES = """
create trigger if not exists {table}_{how}_touches after {how} on {table} begin
    delete from touched where run_id = {row}.run_id;
    insert into touched (run_id) values ({row}.run_id);
end;
"""
_ROWS = {"insert": "new", "update": "new", "delete": "old"}

REGISTRY_SCHEMA = _TABLES + "".join(
    text.format(table=table, how=how, row=row)
    for table in _COUNTED
    for how, row in _ROWS.items()
    for text in (_TRIGGER, _TOUCHES)
)
OF_A_RUN = (
    *("tags", "notes", "prices", "names", "renames", "declared", "declared_log", "shelved", "binned", "glimpses"),
    "timeline_marks",
)
"""Tables whose rows go with their run, by its `run_id`. Who saw it stays known: what was kept of it elsewhere, such as
baselines and promises, is told to nobody else, also where somebody adds the same input again."""
