#!/usr/bin/env bash
# Builds llama.cpp natively from the source package `llama-cpp-python` into the folder given.
# Needs Python 3 with pip and venv, and a C++ compiler. Prints the folder of the programs.
set -euo pipefail
folder="${1:?usage: llama_cpp.sh FOLDER}"
here="$(cd "$(dirname "$0")" && pwd)"
mkdir -p "$folder"
cd "$folder"

python3 -m venv venv
venv/bin/pip install --quiet cmake ninja scikit-build-core setuptools
if ! compgen -G 'llama_cpp_python-*.tar.gz' >/dev/null; then
  venv/bin/pip download --quiet --no-deps --no-build-isolation \
    --no-binary llama-cpp-python llama-cpp-python==0.3.36
fi
tar xzf llama_cpp_python-*.tar.gz
cd llama_cpp_python-*/vendor/llama.cpp
PATH="$OLDPWD/venv/bin:$PATH"
cmake -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
  -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF >/dev/null
cmake --build build --target llama-bench llama-batched-bench llama-server llama-quantize \
  llama-perplexity >/dev/null
cc -std=gnu11 -O2 -Iinclude -Iggml/include -c "$here/llama_logits.c" -o build/llama_logits.o
c++ build/llama_logits.o -o build/bin/llama-logits build/src/libllama.a build/ggml/src/libggml.a \
  build/ggml/src/libggml-cpu.a build/ggml/src/libggml-base.a -fopenmp -lpthread -ldl -lm
echo "$PWD/build/bin"
