#!/usr/bin/env bash
# Gather the wheels that check.sh needs on a machine that has torch, numpy and scipy and no network.
#
#   benchmarks/gpu/wheels.sh [FOLDER]      left out: benchmarks/gpu/wheels
#
# PYTHON_VERSION (3.12) and PLATFORM (manylinux2014_x86_64) are those of that machine. Versions that
# constraints.txt pins are those; all together under 30 MB, without vLLM and torch.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-$here/wheels}
version=${PYTHON_VERSION:-3.12}
platform=${PLATFORM:-manylinux2014_x86_64}
most=$((30 * 1000 * 1000))

# with what they need, so that versions fit each other
whole=(pydantic tyro rich httpx httpx2 jinja2)
# without: they need torch, numpy or one another
alone=(
    gymnasium farama-notifications cloudpickle bm25s lazy-loader packaging
    transformers tokenizers safetensors huggingface-hub regex pyyaml tqdm filelock fsspec
    peft accelerate psutil gguf liger-kernel
)
mkdir -p "$folder"
rm -f "$folder"/*.whl
download() {
    "${PYTHON:-python3}" -m pip download --quiet --only-binary :all: --dest "$folder" \
        --python-version "$version" --implementation cp --platform "$platform" \
        --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux1_x86_64 \
        --platform any -c "$here/../../constraints.txt" "$@"
}
download "${whole[@]}"
download --no-deps "${alone[@]}"
size=$(cat "$folder"/*.whl | wc -c)
echo "$(ls "$folder"/*.whl | wc -l) wheels, $((size / 1000 / 1000)) MB in $folder"
if ((size > most)); then
    echo "wheels.sh: $size bytes are more than $most" >&2
    exit 1
fi
