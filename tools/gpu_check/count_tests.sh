#!/usr/bin/env bash
# count_tests.sh COMMAND...: runs a GoogleTest program and prints one row: how many of its tests
# passed, how many failed, and how many errors compute-sanitizer saw if it watched.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$@" >"$log" 2>&1 || status=$?
passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?.*/\1/p' "$log")
failed=$(grep -c '^\[  FAILED  \] .*([0-9]* ms)$' "$log")
errors=$(sed -n 's/^=*.*SUMMARY: \([0-9]*\) \(error\|hazard\).*/\1/p' "$log" | tail -n 1)
name="operators' tests"
[[ $* = *--tool* ]] && name=$(sed 's/.*--tool \([a-z]*\).*/\1/' <<<"$*")
printf 'row\ttests\t%s\tpassed\t%s\t>= 1\tfailed\t%s\t<= 0' "$name" "${passed:-0}" "$failed"
[ -n "$errors" ] && printf '\terrors\t%s\t<= 0' "$errors"
printf '\n'
[ "$status" -eq 0 ] && exit 0
grep -E '^\[  FAILED  \]|^=+ (Error|ERROR|Invalid|.*hazard)|Check failed' "$log" | tail -n 5 >&2
exit "$status"
