#!/bin/sh
# The role of Chipledger and its database, as PostgreSQL starts for the first time: one that is no superuser, so that who
# speaks as it reads no file of the server and starts nothing there.
set -eu
psql --set ON_ERROR_STOP=1 --set word="$(cat /run/registry/word)" --username "$POSTGRES_USER" --dbname postgres <<'SQL'
create role chipledger login nosuperuser nocreatedb nocreaterole password :'word';
create database chipledger owner chipledger encoding 'UTF8' template template0;
SQL
