#!/usr/bin/env bash
# compare.sh MODEL ROWS PYTHON: trains with PyTorch what `longhaul_bench_gpu train MODEL` trained,
# whose lines are in the file ROWS, and prints the ratio of the two rates as a row.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model=$1 rows=$2 python=$3
shape=$(awk -F '\t' -v model="$model" '$1 == "shape" && $2 == model' "$rows" | cut -f 2-)
mine=$(awk -F '\t' -v model="$model" '
  $1 == "row" && $2 == "training" && index($3, model " ") == 1 {
    for (i = 4; i < NF; i += 3) if ($i == "tokens/s") print $(i + 1)
  }' "$rows")
if [ -z "$shape" ] || [ -z "$mine" ]; then
  echo "$model did not train, so there is nothing to compare with" >&2
  exit 1
fi
read -ra words <<<"$shape"
theirs=$("$python" "$here/torch_side.py" "${words[@]}")
awk -v mine="$mine" -v theirs="$theirs" -v model="$model" 'BEGIN {
  printf "row\ttraining\t%s PyTorch compiled\ttokens/s\t%.4g\t-\tours by it\t%.4g\t>= 1\n", model,
         theirs, mine / theirs
}'
