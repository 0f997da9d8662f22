#!/usr/bin/env bash
# Commands of ./dev, run from the repository root.
set -euo pipefail
source tools/dev/common.sh

usage() {
  cat <<'TEXT'
usage: ./dev COMMAND

  demo [--text FILE]   build, train a small GPT on four workers in two sites, sample from it
  test [REGEX]         build and run every test (or those whose name matches)
  build                a release build: build/bin/longhaul and build/bin/longhauld
  install [PREFIX]     build, and install what deploy/README.md needs under PREFIX (/usr/local)
  build --cuda [ARCHITECTURES]
                       the same programs with CUDA, in build-cuda/bin, and the tests of its kernels:
                       for cards of 8.0, 8.6, 8.9, 9.0 and later, or those given ("90"); runs the
                       tests if there is a card
  gpu-check            the bundle that checks the CUDA backend on a machine with a card
  lint                 house rules, format, links
  sanitize [asan|tsan] the tests under AddressSanitizer + UBSan, or ThreadSanitizer
  fuzz [SECONDS]       run each fuzz target for some seconds (10)
  bench [NAME]         run a benchmark; without a name, list them. What was measured for this
                       commit and machine is not measured again without --fresh
  setup                install the Debian packages that building and testing need
  clean                remove every build folder
TEXT
}

command_setup() { install_packages "${packages[@]}"; }

# Needs nvcc of the CUDA toolkit, which Debian does not have, and no card.
build_cuda() {
  command -v nvcc >/dev/null || die "needs the CUDA toolkit's nvcc in PATH (CUDA 13)"
  fetch_cudnn_frontend build-cuda
  configure build-cuda -DCMAKE_BUILD_TYPE=Release -DLONGHAUL_CUDA=ON \
    ${1:+-DLONGHAUL_CUDA_ARCHITECTURES=$1}
  say "building (release, CUDA)"
  compile build-cuda compute_cuda_test nccl_library_test longhaul longhauld
  build-cuda/bin/longhauld --version >&2
  say "testing (CUDA)"
  ctest --test-dir build-cuda -L cuda --output-on-failure --verbose |
    grep -E 'tests? (skipped|passed|failed)'
  tools/cuda_resources --architecture 90 | tail -1
}

command_build() {
  command_setup
  if [ "${1:-}" = --cuda ]; then
    build_cuda "${2:-}"
    return
  fi
  configure build -DCMAKE_BUILD_TYPE=Release
  say "building (release)"
  compile build all
}

# Unlike the build, which needs no more than the user's own rights, this writes where PREFIX is.
command_install() {
  command_build
  say "installing under ${1:-/usr/local}"
  cmake --install build --strip --prefix "${1:-/usr/local}" >build/install.log ||
    die "installing failed; see build/install.log"
}

# run_tests DIR CTEST_OPTION...: -j counts halves of a core, as the tests' PROCESSORS do: one that
# computes takes two, one that mostly waits for real daemons takes one. Sanitizers make all compute.
run_tests() {
  local dir=$1
  shift
  ctest --test-dir "$dir" --output-on-failure -j$((2 * $(nproc))) "$@"
}

command_test() {
  command_build
  say "testing"
  run_tests build ${1:+-R "$1"}
}

command_gpu_check() {
  command_setup
  exec tools/gpu-check "$@"
}

command_lint() {
  install_packages "${lint_packages[@]}"
  tools/lint
  tools/lint_test
}

# ThreadSanitizer needs every library instrumented that synchronises threads; the distribution's
# gRPC and Abseil are not. So that build leaves RPC out and runs what works over the in-process
# transport.
command_sanitize() {
  command_setup
  local which=${1:-all}
  if [ "$which" = asan ] || [ "$which" = all ]; then
    configure build-asan -DCMAKE_BUILD_TYPE=Release -DLONGHAUL_SANITIZE=address,undefined
    say "building (AddressSanitizer, UBSan)"
    compile build-asan all
    run_tests build-asan -j"$(nproc)"
  fi
  if [ "$which" = tsan ] || [ "$which" = all ]; then
    configure build-tsan -DCMAKE_BUILD_TYPE=Release -DLONGHAUL_SANITIZE=thread -DLONGHAUL_RPC=OFF
    say "building (ThreadSanitizer)"
    compile build-tsan all
    run_tests build-tsan -j"$(nproc)"
  fi
}

command_fuzz() {
  command_setup
  install_packages "${fuzz_packages[@]}"
  configure build-fuzz -DCMAKE_BUILD_TYPE=Release -DLONGHAUL_FUZZ=ON -DLONGHAUL_RPC=OFF \
    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DLONGHAUL_SANITIZE=address,undefined
  compile build-fuzz longhaul_fuzz_frame longhaul_fuzz_codec
  local target
  for target in longhaul_fuzz_frame longhaul_fuzz_codec; do
    say "$target for ${1:-10} s"
    "build-fuzz/bin/$target" -max_total_time="${1:-10}" -print_final_stats=1 2>&1 | tail -6
  done
}

command_bench() {
  if [ $# -eq 0 ]; then
    printf 'benchmarks:\n'
    sed -n 's/^# bench: /  /p' tests/bench/*.py tests/bench/*.sh 2>/dev/null
    return
  fi
  command_build
  local name=$1 script
  shift
  for script in "tests/bench/$name.py" "tests/bench/$name.sh"; do
    [ -x "$script" ] && exec "$script" "$@"
  done
  die "no benchmark '$name'; ./dev bench lists them"
}

command_demo() {
  install_packages "${packages[@]}" "${demo_packages[@]}"
  configure build -DCMAKE_BUILD_TYPE=Release
  say "building (release)"
  compile build longhaul longhauld
  exec tools/dev/demo.sh "$@"
}

command_clean() { rm -rf build build-asan build-tsan build-fuzz build-cuda build-gpu-check; }

main() {
  local command=${1:-help}
  [ $# -gt 0 ] && shift
  case $command in
    setup | build | install | test | lint | sanitize | fuzz | bench | demo | clean)
      "command_$command" "$@"
      ;;
    gpu-check) command_gpu_check "$@" ;;
    help | -h | --help) usage ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
}
main "$@"
