#!/bin/sh
# parse.sh COMPILER ARGUMENTS…: whether a source can be parsed up to its last line, an assertion that fails. There the
# compiler stops. What would follow are LibTorch's templates, which GCC instantiates at the end of every source, even
# of an empty one, and which take six times as long as the headers. Precompiled headers are compiled as usual.
case " $* " in *" c++-header "*) exec "$@" ;; esac
errors=$(LC_ALL=C "$@" -fsyntax-only -Wfatal-errors 2>&1) && { echo "no assertion failed" >&2; exit 1; }
printf '%s\n' "$errors" | grep -q 'error: static.*failed.*parsed to the end' || { printf '%s\n' "$errors" >&2; exit 1; }
