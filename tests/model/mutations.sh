#!/usr/bin/env bash
# Breaks the protocol, one promise at a time, and shows that the model notices.
#
#   tests/model/mutations.sh [NAME]...      all of them without a name
#
# Each mutations/NAME.patch is applied to a copy of the files of shared/ that decide; the model is built against the copy and has to
# find a broken promise. With no name given, the copy without any patch comes first and has to pass. Only the protocol's files and the
# model are compiled, with the versions of Cargo.lock, under target/mutants.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
out=$root/target/mutants
files=(cursor/model.rs cursor/notes.rs cursor/protocol.rs source/checkpoint.rs sweep/fold.rs sweep/hand.rs sweep/kept.rs sweep/lease.rs sweep/owed.rs sweep/pipeline.rs sweep/window.rs)

version() { sed -n "s/^$1 = .*\(version = \)\?\"\([0-9.]*\)\".*/\2/p" Cargo.toml | head -n 1; }

# workspace: two crates that carry the names of the real ones; the model's source is the real one.
workspace() {
  mkdir -p "$out/core/src/cursor" "$out/core/src/source" "$out/core/src/sweep" "$out/model"
  cat >"$out/Cargo.toml" <<EOF
[workspace]
resolver = "3"
members = ["core", "model"]

[profile.dev]
opt-level = 2
debug = false
incremental = false
EOF
  cat >"$out/core/Cargo.toml" <<EOF
[package]
name = "tablesweep"
version = "0.1.0"
edition = "2024"

[dependencies]
base64 = "$(version base64)"
serde = { version = "1", features = ["derive"] }
serde_json = { version = "1", features = ["raw_value", "preserve_order"] }
sha2 = "$(version sha2)"
thiserror = "2"
EOF
  cat >"$out/model/Cargo.toml" <<EOF
[package]
name = "tablesweep-model"
version = "0.1.0"
edition = "2024"

[lib]
path = "$root/tests/model/src/lib.rs"

[[bin]]
name = "tablesweep-model"
path = "$root/tests/model/src/main.rs"

[dependencies]
stateright = "$(version stateright)"
tablesweep = { path = "../core" }
EOF
  cp tests/model/mutations/shell.rs "$out/core/src/lib.rs"
  cp Cargo.lock "$out/Cargo.lock"
}

# build NAME: the model against the files with the patch NAME, or without one.
build() {
  local file
  # The tests of the files stay behind: they are not compiled, and some need more of the library.
  for file in "${files[@]}"; do cp "shared/src/$file" "$out/core/src/$file"; done
  if [ "$1" != none ]; then
    patch --quiet --strip=3 --directory="$out/core/src" <"tests/model/mutations/$1.patch"
  fi
  CARGO_TARGET_DIR=$out/target RUSTFLAGS='--cap-lints allow' cargo build --quiet --manifest-path "$out/Cargo.toml" --package tablesweep-model
}

workspace
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for file in tests/model/mutations/*.patch; do names+=("$(basename "$file" .patch)"); done
  build none
  if ! "$out/target/debug/tablesweep-model" short >"$out/none.log"; then
    cat "$out/none.log" >&2
    echo 'the protocol is broken without any mutation' >&2
    exit 1
  fi
  echo 'none: every promise holds'
fi

failed=0
for name in "${names[@]}"; do
  build "$name"
  if "$out/target/debug/tablesweep-model" short >"$out/$name.log"; then
    echo "$name: SURVIVED" >&2
    failed=1
  elif grep -q '^BROKEN' "$out/$name.log"; then
    sed -n "s/^BROKEN: /$name: caught, /p" "$out/$name.log" | head -n 1
  else
    echo "$name: the model itself failed, see $out/$name.log" >&2
    failed=1
  fi
done
exit $failed
