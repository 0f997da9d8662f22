# Shared by the commands of ./dev; sourced, run from the repository root.

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# Debian packages for building, testing and the demo. ARCHITECTURE.md says what each is for.
packages=(
  build-essential cmake ninja-build ccache mold pkg-config
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libssl-dev libzstd-dev libxxhash-dev libopenblas-dev libgloo-dev
  libsqlite3-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev
  prometheus-cpp-dev libmicrohttpd-dev libsystemd-dev libgtest-dev libgmock-dev
  libboost-context-dev
  git openssl python3 systemd
)
# Only for ./dev lint and ./dev fuzz.
lint_packages=(clang-format)
fuzz_packages=(clang libclang-rt-14-dev)
# English text for the demo: the King James Bible, about 4 MB.
demo_packages=(bible-kjv bible-kjv-text)

# install_packages NAME...: installs what is missing, as root or through sudo.
install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  command -v apt-get >/dev/null || die "needs Debian's apt-get, or these packages: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "run as root, or install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q >/dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# configure DIR CMAKE_OPTION...: configures once, and again when the options change.
configure() {
  local dir=$1
  shift
  local stamp="$dir/.dev-options"
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  if [ "$(cat "$stamp" 2>/dev/null)" != "$*" ]; then
    mkdir -p "$dir"
    cmake -S . -B "$dir" -G Ninja "$@" >"$dir/configure.log" 2>&1 ||
      { cat "$dir/configure.log" >&2; die "configuring $dir failed"; }
    printf '%s' "$*" >"$stamp"
  fi
}

# compile DIR [TARGET...]
compile() {
  local dir=$1
  shift
  ninja -C "$dir" "$@" >"$dir/build.log" 2>&1 ||
    { tail -60 "$dir/build.log" >&2; die "building $dir failed"; }
}

# fetch_cudnn_frontend DIR: the headers of cuDNN's graph API for C++, for the CUDA build in DIR.
# Without them attention is our own kernel.
fetch_cudnn_frontend() {
  [ -d "$1/cudnn-frontend" ] ||
    python3 -m pip install --quiet --no-deps --target "$1/cudnn-frontend" \
      nvidia-cudnn-frontend==1.32.0 2>/dev/null ||
    say "cuDNN's frontend could not be fetched (python3 -m pip): attention is by our own kernel"
}
