# The parts of the check; sourced by run.sh.

# require_card: ends with 77 and the reason if there is no card that the programs can use.
require_card() {
  local status=0
  "${ours[@]}" "$here/bin/longhaul_bench_gpu" card >"$work/card" 2>"$work/errors" || status=$?
  if [ "$status" -eq 77 ]; then
    printf '      %s: not run\n' "${parts[@]}"
    echo "gpu-check: $(tail -n 1 "$work/errors")" >&2
    exit 77
  fi
  [ "$status" -eq 0 ] || die "the card cannot be used: $(tail -n 1 "$work/errors")"
  show <"$work/card"
}

# The operators' tests, which read golden vectors below the current folder.
check_tests() {
  cd "$here" || die "no folder $here"
  part tests 90 "$here/count_tests.sh" "${ours[@]}" "$here/bin/compute_cuda_test"
}

check_training() {
  local model
  for model in gpt2 llama; do
    part "training $model" 45 "${ours[@]}" "$here/bin/longhaul_bench_gpu" train "$model" \
      "${tiny[@]}"
  done
}

# On the shapes and with the micro-batches of the training part.
check_pytorch() {
  local model version
  if ! version=$("$python" -c "$torch_probe" 2>/dev/null); then
    note "$python has no PyTorch for CUDA: nothing to compare with; --python names another"
    return
  fi
  note "PyTorch $version"
  grep -q '^shape' "$rows" || check_training
  for model in gpt2 llama; do
    part "PyTorch $model" 120 "$here/compare.sh" "$model" "$rows" "$python"
  done
}

check_losses() {
  part losses 45 "${ours[@]}" "$here/bin/longhaul_bench_gpu" losses "${tiny[@]}"
}

check_pipeline() { part pipeline 75 "$here/pipeline.sh" "${tiny[@]}" "${ours[@]}"; }

check_operators() {
  local model
  for model in gpt2 llama; do
    part "operators $model" 60 "${ours[@]}" "$here/bin/longhaul_bench_gpu" operators "$model" \
      "${tiny[@]}"
  done
}

# sanitize_tests: takes as long as it takes, up to half an hour for each tool.
sanitize_tests() {
  local tool sanitizer
  sanitizer=$(PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin command -v compute-sanitizer) ||
    die "no compute-sanitizer in PATH and /usr/local/cuda/bin: it comes with the CUDA toolkit"
  cd "$here" || die "no folder $here"
  seconds_max=3600
  for tool in memcheck racecheck; do
    part "$tool" 1800 "$here/count_tests.sh" "${ours[@]}" "$sanitizer" --tool "$tool" \
      --error-exitcode 9 "$here/bin/compute_cuda_test"
  done
}
