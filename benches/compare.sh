#!/usr/bin/env bash
# The peer application beside Java's and beside the raw loop, in turn, on a broker of its own: what stands in RESULTS.md.
#
#   bash benches/compare.sh [ROUNDS [RECORDS [BYTES]]]       (default 1 round of 3,000,000 records of 100 bytes)
#
# MODES picks what is measured: "MODE:KEYS …" (default "copy:10000 sum:10000 sum:1000000 window:10000 join:10000").
# RATE=5000 measures latency instead: that many records of BYTES a second for SECONDS_EACH (30) through copy, from the due time
# of a record to a read_committed reader; ours with adaptive commits, without, and without pipelining, then Java.
# GUARANTEES=1 measures what exactly-once costs: MODES (default "copy:10000 sum:10000") under exactly-once, at-least-once and
# exactly-once without pipelining, in turn, the order changing with each round, all with COMMIT_MS (100) between commits. The
# last lines are the medians of the rates behind the first commit, and each as a part of at-least-once's.
# Wants Java 17, Maven and the tools of `cargo xtask setup`; builds `peer` and `rawloop` as a release build has them.
# Each line is the harness's own; `latest=` of the two digests must be equal, or the script fails. Nothing else should run
# on the machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-1} records=${2:-3000000} bytes=${3:-100}
if [ -n "${GUARANTEES:-}" ]; then modes=${MODES:-copy:10000 sum:10000}; fi
modes=${modes:-${MODES:-copy:10000 sum:10000 sum:1000000 window:10000 join:10000}}

target=${CARGO_TARGET_DIR:-$PWD/target}
work=$target/compare
port=${PORT:-19192}
mkdir -p "$work/libs" "$work/classes" "$work/state"
export KAFKA_BOOTSTRAP=127.0.0.1:$port

# The two programs, without running them. The settings are those of `cargo xtask bench`.
settings=()
for crate in streams-core streams-state streams-dsl benches; do
    for setting in opt-level=3 debug-assertions=false overflow-checks=false; do
        settings+=(--config "profile.dev.package.$crate.$setting")
    done
done
cargo build --quiet --package benches --bins "${settings[@]}"
cp "$target/debug/peer" "$target/debug/rawloop" "$work/"

# Java itself is not measured then, but the harness is Java's.
mvn -q -f tests/peers/pom.xml dependency:copy-dependencies -DoutputDirectory="$work/libs"
javac -cp "$work/libs/*" -d "$work/classes" tests/peers/StreamsPeer.java
harness() { java -Xmx1g -cp "$work/classes:$work/libs/*" StreamsPeer "$@"; }

bash tests/peers/broker.sh "$work/broker" "$port" "$work/libs" >"$work/broker.log" 2>&1 &
broker=$!
trap 'kill "$broker" 2>/dev/null; wait "$broker" 2>/dev/null || true; rm -rf "$work/broker" "$work/state"' EXIT
bash tests/peers/broker.sh --wait "$port"

latency() { # WHAT COMMAND...
    local what=$1 id=latency-$1
    shift
    for topic in in out; do harness topic "$topic-$id" 4 >/dev/null; done
    STATE_DIR=$work/state/$id "$@" run copy "app-$id" "in-$id" "out-$id" 1 >"$work/$id.log" 2>&1 &
    local application=$!
    for _ in $(seq 300); do
        if grep -q "STATE RUNNING" "$work/$id.log"; then break; fi
        sleep 0.1
    done
    printf '%s: ' "$id"
    harness latency "in-$id" "out-$id" "$RATE" "${SECONDS_EACH:-30}" "$bytes"
    kill "$application" && wait "$application" || true
    harness delete "*-$id" "app-*" >/dev/null
}

if [ -n "${RATE:-}" ]; then
    java=(java -Xmx1g -cp "$work/classes:$work/libs/*" StreamsPeer)
    for round in $(seq "$rounds"); do
        ADAPTIVE=true latency "adaptive-$round" "$work/peer"
        latency "interval-$round" "$work/peer"
        PIPELINED=false latency "depth-0-$round" "$work/peer"
        latency "java-$round" "${java[@]}"
    done
    exit 0
fi

harness gentable plans 4 10000 >/dev/null
for keys in $(tr ' ' '\n' <<<"$modes" | cut -d: -f2 | sort -u); do
    harness gen "in-$keys" 4 "$records" "$bytes" "$keys"
done

measure() { # WHO MODE IN OUT COMMAND...
    local who=$1 mode=$2 in=$3 out=$4
    shift 4
    harness topic "$out" 4 >/dev/null
    local second="" inputs=$in
    if [ "$mode" = join ]; then second=plans inputs=$in,plans; fi
    printf '%s %s %s: ' "$who" "$mode" "$in"
    STATE_DIR=$work/state/$out harness bench "app-$out" "$inputs" -- "$@" run "$mode" "app-$out" "$in" "$out" 1 $second
}

variant() { # VARIANT: the environment of one, on standard output
    case $1 in
        exactly-once) echo GUARANTEE=exactly_once_v2 PIPELINED=true ;;
        at-least-once) echo GUARANTEE=at_least_once PIPELINED=true ;;
        depth-0) echo GUARANTEE=exactly_once_v2 PIPELINED=false ;;
    esac
}

median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

guarantees() { # MODE IN
    local mode=$1 in=$2 order=(exactly-once at-least-once depth-0) rates=$work/rates-$1-$2
    rm -f "$rates" && touch "$rates"
    for round in $(seq "$rounds"); do
        echo "# $mode, $in, round $round of $rounds, load $(cut -d' ' -f1 /proc/loadavg)"
        local outputs=()
        for who in "${order[@]}"; do
            local out=out-$who-$mode-$in-$round line
            # shellcheck disable=SC2046 # words are wanted
            line=$(
                export $(variant "$who") COMMIT_MS="${COMMIT_MS:-100}"
                measure "$who" "$mode" "$in" "$out" "$work/peer"
            )
            echo "$line"
            echo "$who $(grep -o 'rate_after_first=[0-9]*' <<<"$line" | cut -d= -f2)" >>"$rates"
            outputs+=("$out")
        done
        local digests
        digests=$(harness digest "${outputs[@]}")
        if [ "$(grep -o ' latest=[^ ]*' <<<"$digests" | sort -u | wc -l)" -ne 1 ]; then
            echo "$digests"
            echo "the outputs of $mode differ" >&2
            failed=1
        fi
        harness delete "out-*" "app-*" >/dev/null
        rm -rf "${work:?}/state" && mkdir -p "$work/state"
        order=("${order[@]:1}" "${order[0]}")
    done
    local base
    base=$(awk '$1 == "at-least-once" { print $2 }' "$rates" | median)
    for who in exactly-once at-least-once depth-0; do
        awk -v who="$who" '$1 == who { print $2 }' "$rates" | median |
            awk -v who="$who" -v mode="$mode" -v base="$base" '{ printf "%s %s: median %d/s, %.2f of at-least-once\n", mode, who, $1, $1 / base }'
    done
}

failed=0
if [ -n "${GUARANTEES:-}" ]; then
    for pair in $modes; do guarantees "${pair%:*}" "in-${pair#*:}"; done
    exit "$failed"
fi
for pair in $modes; do
    mode=${pair%:*} in=in-${pair#*:}
    for round in $(seq "$rounds"); do
        id=$mode-$in-$round
        echo "# $id, load $(cut -d' ' -f1 /proc/loadavg)"
        measure ours "$mode" "$in" "out-ours-$id" "$work/peer"
        measure java "$mode" "$in" "out-java-$id" java -Xmx1g -cp "$work/classes:$work/libs/*" StreamsPeer
        if [ "$mode" = copy ]; then
            harness topic "out-raw-$id" 4 >/dev/null
            # Under the harness like the others: what the harness costs is the same for all.
            printf 'raw copy %s: ' "$in"
            STATE_DIR=$work/state/raw harness bench "app-raw-$id" "$in" -- "$work/rawloop" copy "$in" "out-raw-$id" "app-raw-$id"
        fi
        # Two digests, one `latest` between them.
        digests=$(harness digest "out-ours-$id" "out-java-$id")
        echo "$digests"
        if [ "$(grep -o ' latest=[^ ]*' <<<"$digests" | sort -u | wc -l)" -ne 1 ]; then
            echo "the outputs of $id differ" >&2
            failed=1
        fi
        harness delete "out-*" "app-*" >/dev/null
        rm -rf "${work:?}/state" && mkdir -p "$work/state"
    done
done
exit "$failed"
