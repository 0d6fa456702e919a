#!/usr/bin/env bash
# Measure turngym on this machine's GPU and write one report: gpu-check/report.html.
#
#   benchmarks/gpu/check.sh [--toy] [--out FOLDER] [--model FOLDER_OR_GGUF] [--minutes N] [--part NAME ...]
#
# Needs a checkout and Python with a CUDA build of torch, numpy and scipy. Everything else comes from
# the wheels that wheels.sh gathers where there is a network (benchmarks/gpu/wheels, or $WHEELS); they
# are unpacked into a folder of the check, nothing is installed. --toy rehearses all of it on a CPU.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
wheels=${WHEELS:-$here/wheels}
python=${PYTHON:-python3}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# the package without an installation: its folders under its name
mkdir "$scratch/turngym"
for room in envs agents algos leaderboard benchmarks; do
    ln -s "$root/$room" "$scratch/turngym/$room"
done
site=$scratch/site
mkdir "$site"
if compgen -G "$wheels/*.whl" >/dev/null; then
    for wheel in "$wheels"/*.whl; do
        "$python" -m zipfile -e "$wheel" "$site"
    done
fi
export PYTHONPATH=$scratch:$site${PYTHONPATH:+:$PYTHONPATH}

if ! missing=$("$python" - 2>&1 <<'EOF'
import importlib.util
need = "torch numpy scipy transformers tokenizers safetensors gymnasium pydantic bm25s tyro rich httpx"
raise SystemExit(" ".join(n for n in need.split() if not importlib.util.find_spec(n)) or 0)
EOF
); then
    echo "check.sh: $python lacks: $missing" >&2
    echo "torch, numpy and scipy must be there; gather the rest with benchmarks/gpu/wheels.sh where there is a network, and put the folder wheels beside it." >&2
    exit 2
fi
"$python" -m turngym.benchmarks.speed.gpu.check "$@"
