# Shared by the scripts of the bundle; sourced, with `here` set to its folder.

seconds_max=600  # most runs take half of it
patience=1  # the test's, whose machine may be busy
torch_probe='import torch; assert torch.cuda.is_available(); print(torch.__version__)'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=$work/rows
touch "$rows"
missed=
ours=()  # how to start the bundle's programs

# find_libraries: sets `ours` so that the programs find the toolkit's libraries, and GCC's where the
# machine's are older; ends with what is missing.
find_libraries() {
  local folder packages path=${LD_LIBRARY_PATH:-} answer
  packages=$("$python" -c 'import os, site
for root in site.getsitepackages() + [site.getusersitepackages()]:
    root = os.path.join(root, "nvidia")
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        print(os.path.join(root, name, "lib"))' 2>/dev/null)
  while read -r folder; do
    [ -d "$folder" ] && path=${path:+$path:}$folder
  done < <(printf '%s\n' "${CUDA_HOME:+$CUDA_HOME/lib64}" /usr/local/cuda/lib64 \
    /usr/local/cuda-13*/lib64 "$packages")
  for folder in '' "$here/lib/gcc"; do
    ours=(env "LD_LIBRARY_PATH=${folder:+$folder:}$path")
    answer=$("${ours[@]}" "$here/bin/longhaul_bench_gpu" --help 2>&1)
    [ $? -eq 2 ] && return
  done
  die "the programs do not start: $(tail -n 1 <<<"$answer")"
}

die() {
  printf 'gpu-check: %s\n' "$*" >&2
  exit 1
}

# show: lays out what the parts print, and keeps it.
show() { tee -a "$rows" | awk -F '\t' -f "$here/rows.awk"; }

note() { printf 'note\t%s\n' "$*" | show; }

miss() {
  printf 'FAIL  %s\n' "$*"
  missed=1
}

# left SECONDS: as many, or what is left of all.
left() {
  local rest=$((patience * seconds_max - SECONDS)) wanted=$((patience * $1))
  [ "$rest" -lt "$wanted" ] && echo "$rest" || echo "$wanted"
}

# part NAME SECONDS COMMAND...: shows its rows as they come; a miss if it fails or takes longer.
part() {
  local name=$1 seconds status
  seconds=$(left "$2")
  shift 2
  if [ "$seconds" -le 0 ]; then
    miss "$name: not done, $seconds_max s are over; --part does a part alone"
    return
  fi
  timeout -k 5 "$seconds" "$@" 2>"$work/errors" | show
  status=${PIPESTATUS[0]}
  case $status in
    0) ;;
    124 | 137) miss "$name: not done in $seconds s; $(tail -n 1 "$work/errors" | cut -c 1-400)" ;;
    *) miss "$name: $(tail -n 1 "$work/errors" | cut -c 1-400)" ;;
  esac
}

# Ends with the verdict on all rows.
finish() {
  awk -F '\t' -v quiet=1 -f "$here/rows.awk" "$rows" || missed=1
  if [ -n "$missed" ]; then
    echo "gpu-check: not all is as it should be (FAIL), after $SECONDS s"
    exit 1
  fi
  echo "gpu-check: all targets reached, in $SECONDS s"
  exit 0
}
