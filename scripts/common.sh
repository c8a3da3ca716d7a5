# What the chores share; read with `. scripts/common.sh` from the root of the repository.
# shellcheck shell=sh

# The Python of the project's own environment.
venv=.venv
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf '==> %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
# One clear message and an exit status that says so.
stop() {
    printf 'error: %s\n' "$*" >&2
    exit 4
}
have() { command -v "$1" >/dev/null 2>&1; }
