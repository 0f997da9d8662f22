#!/usr/bin/env bash
# The entry of the bundle that tools/gpu-check makes; --help says what it does.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/common.sh"
source "$here/parts.sh"

usage() {
  cat <<'TEXT'
usage: ./run.sh [--python PATH] [--part NAME]...
       ./run.sh --sanitize

Checks Longhaul's CUDA backend on this machine's first card (CUDA_VISIBLE_DEVICES chooses another)
in about five minutes, ten at most, and prints what it measured with the targets in brackets. Needs
the driver, and the libraries of CUDA toolkit 13, which are looked for in CUDA_HOME, /usr/local/cuda
and Python's packages. docs/cuda.md of Longhaul's sources says what each row means.

  --python PATH  a Python with PyTorch, to compare with (python3 if it has it)
  --part NAME    only this part: tests, training, pytorch, losses, pipeline or operators; may be
                 repeated
  --sanitize     instead: compute-sanitizer's memcheck and racecheck over the operators' tests

Exit codes: 0 all targets reached, 1 not all, 2 bad usage, 77 no card to run on.
TEXT
}

all_parts=(tests training pytorch losses pipeline operators)
python=python3
parts=()
sanitize=
tiny=()
while [ $# -gt 0 ]; do
  case $1 in
    --python | --part)
      [ $# -ge 2 ] || { usage >&2; exit 2; }
      if [ "$1" = --python ]; then python=$2; else parts+=("$2"); fi
      shift
      ;;
    --sanitize) sanitize=1 ;;
    --tiny) tiny=(--tiny) patience=4 ;; # on the emulated device, for the test of this script
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
for part in "${parts[@]}"; do
  [[ " ${all_parts[*]} " = *" $part "* ]] || { usage >&2; exit 2; }
done
[ ${#parts[@]} -gt 0 ] || parts=("${all_parts[@]}")

find_libraries
require_card
if [ -n "$sanitize" ]; then
  sanitize_tests
else
  for part in "${parts[@]}"; do "check_$part"; done
fi
finish
