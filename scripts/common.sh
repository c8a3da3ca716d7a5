# Functions and variables that the chores share. Source it from the root of the repository: `. scripts/common.sh`.
# shellcheck shell=sh

# The Python of the project's own environment.
venv=.venv
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf '==> %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
# Prints one message and exits with status 4.
stop() {
    printf 'error: %s\n' "$*" >&2
    exit 4
}
have() { command -v "$1" >/dev/null 2>&1; }
