#!/usr/bin/env bash
# verify.sh LONGHAULD: `systemd-analyze verify` on copies of the units whose program is the built
# one. Exit code 77 (skipped) where systemd-analyze is not installed.
set -euo pipefail
program=$1
units=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! command -v systemd-analyze > /dev/null; then
  echo "skipped: systemd-analyze is not installed (Debian package systemd)"
  exit 77
fi

copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT
cp "$units/longhaul-coordinator.service" "$copies/"
cp "$units/longhaul-worker@.service" "$copies/longhaul-worker@berlin-1.service"
# A drop-in's sections add to the unit's.
cat "$units/longhaul-worker@.service" "$units/longhaul-worker-card.conf" \
  >"$copies/longhaul-worker@berlin-2.service"
# The documentation and the user are the package's to install.
sed -i -e "s|/usr/bin/longhauld|$program|" -e '/^Documentation=/d' -e '/^User=/d' -e '/^Group=/d' \
  "$copies"/*.service

complaints=$(systemd-analyze verify --man=no "$copies"/*.service 2>&1 | grep -F "$copies" || true)
systemd-analyze verify --man=no "$copies"/*.service || { echo "verify failed"; exit 1; }
if [[ -n $complaints ]]; then
  echo "$complaints"
  exit 1
fi
echo "the units are good"
