#!/usr/bin/env bash
# ./dev demo: a small GPT trained on English text by four workers in two sites, from nothing to a
# sample. Everything it starts is stopped at the end, also on Ctrl+C.
set -euo pipefail
source tools/dev/common.sh

text=''
while [ $# -gt 0 ]; do
  case $1 in
    --text)
      [ $# -ge 2 ] || die "--text needs a file"
      text=$2
      shift 2
      ;;
    *) die "unknown option $1; usage: ./dev demo [--text FILE]" ;;
  esac
done

longhaul=$PWD/build/bin/longhaul
folder=$(mktemp -d "${TMPDIR:-/tmp}/longhaul-demo.XXXXXX")
cluster=$folder/cluster
following=''

finish() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$following" ]; then
    kill "$following" 2>/dev/null || true
    wait "$following" 2>/dev/null || true
  fi
  [ -e "$cluster/cluster.json" ] && "$longhaul" down --dir "$cluster" --patience 3 || true
  rm -rf "$folder"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -z "$text" ]; then
  text=$folder/bible.txt
  bible -l70 Gen1:1-Rev22:21 >"$text"
else
  [ -r "$text" ] || die "cannot read $text"
  cp -- "$text" "$folder/text"
  text=$folder/text
fi

# About 1.2 million parameters; warm-up and cosine decay as in the README's example.
cat >"$folder/demo.yaml" <<YAML
name: demo
model:    {family: gpt2, layers: 6, hidden: 128, heads: 4, context: 64, vocab: 256}
data:     {train: $(basename "$text"), tokenizer: bytes, validation_fraction: 0.05}
train:
  steps: ${LONGHAUL_DEMO_STEPS:-300}
  global_batch: 16
  micro_batch: 2
  optimizer:
    {name: adamw, learning_rate: 2.0e-3, betas: [0.9, 0.95], weight_decay: 0.1, grad_clip: 1.0}
  schedule: {warmup_steps: 30, decay: cosine, min_learning_rate: 2.0e-4}
  seed: 1
pipeline: {stages: 4, schedule: 1f1b}
exchange: {codec: none}
YAML

say "starting a coordinator and four workers in two sites"
# In the background, so that Ctrl+C reaches this script's trap at once.
"$longhaul" up --workers 4 --sites 2 --dir "$cluster" --detach & following=$!
wait "$following"
say "training on $(($(wc -c <"$text") / 1024)) KiB of text"
"$longhaul" run start "$folder/demo.yaml" --wait --dir "$cluster" & following=$!
wait "$following"
following=''
say "exporting the checkpoint in Hugging Face's layout"
"$longhaul" checkpoint export demo --to "$folder/model" --dir "$cluster"
ls -l "$folder/model"
say "a sample"
"$longhaul" generate --checkpoint "$folder/model" --prompt "And the " --tokens 300
say "stopping everything"
