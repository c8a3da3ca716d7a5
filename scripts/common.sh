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

# Builds the page of `schedlab view`, which the command has in it, if that is possible.
build_page() {
    if [ -x scripts/build-web ] && have npm; then
        scripts/build-web
    else
        warn "without Node, this build leaves out the page of schedlab view"
    fi
}

# Puts a built command where `make install` and the wheel take it from.
place_binary() {
    mkdir -p build/wheel/scripts
    # A copy under another name first: an installed schedlab may be running.
    cp "$1" build/wheel/scripts/.schedlab.new
    mv build/wheel/scripts/.schedlab.new build/wheel/scripts/schedlab
}
