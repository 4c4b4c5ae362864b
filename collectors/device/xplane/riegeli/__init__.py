"""Riegeli/records: files of records in compressed chunks, to which XProf's continuous profiling appends.

Format: https://github.com/google/riegeli/blob/master/doc/riegeli_records_file_format.md
"""

SIGNATURE = bytes.fromhex(
    "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a90000000000000000e19f13c0e9b1c37273"
)
"""How every such file begins; fixed, but for the zeros that follow."""
