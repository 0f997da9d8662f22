#!/usr/bin/env bash
# pipeline.sh [--tiny] COMMAND_PREFIX...: trains GPT-2's shape with real daemons, first in one
# worker on the card, then in two that share it, and prints the rates and their ratio as a row.
# --tiny: a small model.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model='layers: 12, hidden: 768, heads: 12, context: 1024, vocab: 50257'
steps=24 global_batch=32 micro_batch=4 target='>= 0.9'
if [ "${1:-}" = --tiny ]; then
  model='layers: 2, hidden: 16, heads: 2, context: 16, vocab: 256'
  steps=4 global_batch=2 micro_batch=1 target=-
  shift
fi
ours=("$@")
# For each of the two; the processes take memory of their own beside it.
mebibytes=$("${ours[@]}" "$here/bin/longhaul_bench_gpu" card |
  awk -F '\t' '$1 == "free" { print int(0.4 * $2) }')
folder=$(mktemp -d)
daemons=()

last_words() { tail -qn 2 "$folder"/*.log "$folder"/*.json >&2 2>/dev/null; }

finish() {
  local status=$?
  [ "$status" -eq 0 ] || last_words
  [ ${#daemons[@]} -gt 0 ] && kill "${daemons[@]}" 2>/dev/null
  wait
  rm -rf "$folder"
  exit "$status"
}
trap finish EXIT
trap 'exit 1' TERM INT

# start ROLE NAME: a daemon with the configuration from standard input.
start() {
  cat >"$folder/$2.yaml"
  "${ours[@]}" "$here/bin/longhauld" "$1" --config "$folder/$2.yaml" >"$folder/$2.log" 2>&1 &
  daemons+=($!)
}

longhaul() {
  LONGHAUL_COORDINATOR=127.0.0.1:$port LONGHAUL_TOKEN_FILE=$folder/token HOME=$folder \
    "${ours[@]}" "$here/bin/longhaul" "$@"
}

# await WHAT COMMAND...: until the command succeeds; the daemons' last words if it does not, or if
# one of them has ended.
await() {
  local what=$1 end=$((SECONDS + 60))
  shift
  while [ "$SECONDS" -lt "$end" ] && kill -0 "${daemons[@]}" 2>/dev/null; do
    "$@" && return
    sleep 0.1
  done
  echo "not within 60 s: $what" >&2
  exit 1
}

connected() {
  local found
  found=$(longhaul node ls --output json 2>/dev/null | grep -c '"state":"connected"')
  [ "$found" -eq "$1" ]
}

start_worker() {
  start worker "w$1" <<CONFIG
name: w$1
site: here
coordinator: 127.0.0.1:$port
folder: $folder/w$1
cluster_token_file: $folder/token
device: cuda:0
share_device: true
memory: $mebibytes MiB
CONFIG
}

# train STAGES: tokens per second, the median over the steps after the first quarter.
train() {
  cat >"$folder/run$1.yaml" <<RUN
name: run$1
model: {family: gpt2, $model}
data: {train: text.txt, tokenizer: bytes, validation_fraction: 0}
train:
  steps: $steps
  global_batch: $global_batch
  micro_batch: $micro_batch
  optimizer: {name: adamw, learning_rate: 1.0e-4, weight_decay: 0.1, grad_clip: 1.0}
  schedule: {warmup_steps: 2, decay: cosine, min_learning_rate: 1.0e-5}
  seed: 1
  evaluate_every: 0
pipeline: {stages: $1, schedule: 1f1b}
exchange: {codec: bf16}
checkpoint: {every: 0}
RUN
  longhaul run start "$folder/run$1.yaml" --wait --output json >"$folder/run$1.json" \
    2>"$folder/run$1.errors" || {
    tail -qn 1 "$folder/run$1.json" "$folder/run$1.errors" >&2
    exit 1
  }
  sed -n 's/.*"tokens_per_second":\([0-9.e+]*\).*/\1/p' "$folder/run$1.json" |
    tail -n $((steps * 3 / 4)) | sort -g | awk '{ rate[NR] = $1 }
      END { if (NR == 0) exit 1; print rate[int((NR + 1) / 2)] }'
}

(umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$folder/token")
for ((line = 0; line < 20000; ++line)); do
  echo "$line bottles of water on the wall, $((line * 7919 % 1000)) more below"
done >"$folder/text.txt"
port=$((20000 + RANDOM % 20000))
start coordinator coordinator <<CONFIG
listen: 127.0.0.1:$port
folder: $folder/coordinator
cluster_token_file: $folder/token
CONFIG
start_worker 1
await 'one worker connected' connected 1
one=$(train 1)
start_worker 2
await 'two workers connected' connected 2
two=$(train 2)
awk -v one="$one" -v two="$two" -v target="$target" 'BEGIN {
  OFS = "\t"
  CONVFMT = OFMT = "%.4g"
  print "row", "pipeline", "workers on the card", "one, tokens/s", one + 0, "-",
        "two, tokens/s", two + 0, "-", "two by one", two / one, target
}'
