#
# Functions of ./dev: the test suites.  Each adds to $passed and $failed, and to
# $skipped what it left out and why.
#
# What hangs must fail, with a name.  So statements of regression tests have a
# limit, TAP tests one for each file (see t/HybridTest.pm), and each suite as a
# whole, for what cannot be interrupted; all in seconds.
#

statement_limit=${HYBRID_STATEMENT_LIMIT:-600}
file_limit=${HYBRID_TEST_LIMIT:-900}
suite_limit=${HYBRID_SUITE_LIMIT:-3600}

# A suite's program, for as long as a suite may take.
run_suite() {
	suite_started=$(date +%s)
	run timeout --kill-after=20 "$suite_limit" "$@"
}

# Say so if that was not long enough, and what the server was at; the next suite
# gets a new one.
report_time_limit() {
	[ "$1" -ne 0 ] && [ $(($(date +%s) - suite_started)) -ge "$suite_limit" ] || return 0
	echo "TIME LIMIT: stopped after $suite_limit seconds (HYBRID_SUITE_LIMIT)"
	[ -n "$cluster_running" ] || return 0
	PGCONNECT_TIMEOUT=10 timeout 20 psql -X -x -c "SELECT datname, application_name, backend_type,
		now() - query_start AS since, wait_event_type, wait_event, query
		FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid()" || :
	cluster_discard
}

skipped=
skip() {
	skipped="$skipped
  $*"
}

# Count the lines of a log that report single tests.
count() {
	n=$(grep -cE "$1" "$2" || :)
	echo "${n:-0}"
}

# Exit status of a suite and its log: where nothing was reported as failed
# although the suite failed, the suite itself is the failure.
tally() {
	passed=$((passed + $2))
	failed=$((failed + $3))
	if [ "$1" -ne 0 ] && [ "$3" -eq 0 ]; then
		failed=$((failed + 1))
	fi
}

# pg_regress and pg_isolation_regress through make installcheck.
installcheck() {
	cluster_start
	rc=0
	rm -f "$work/tree/regression.diffs"
	run_suite env PGOPTIONS="-c statement_timeout=${statement_limit}s" \
		make -s -C "$work/tree" PG_CONFIG="$PG_CONFIG" with_llvm=no "$@" installcheck \
		>"$work/check.log" 2>&1 || rc=$?
	grep -E '^(test |ok |not ok |# )' "$work/check.log" || cat "$work/check.log"
	for diffs in "$work/tree/regression.diffs" "$work/tree/output_iso/regression.diffs"; do
		if [ "$rc" -ne 0 ] && [ -s "$diffs" ]; then
			cat "$diffs"
			rm -f "$diffs"
		fi
	done
	[ "$rc" -eq 0 ] ||
		grep -E 'PANIC|TRAP|terminated by signal' "$work/data/server.log" | tail -20 || :
	report_time_limit "$rc"
	tally "$rc" "$(count '^(test .*\.\.\. +ok|ok )' "$work/check.log")" \
		"$(count '^(test .*\.\.\. +FAILED|not ok )' "$work/check.log")"
}

# The tests of a suite, by name.
tests_of() {
	case $1 in
		unit) ls test/unit/test_*.c ;;
		regress) ls sql/*.sql ;;
		isolation) ls specs/*.spec ;;
		tap) ls t/*.pl ;;
	esac | sed 's|.*/||; s|\.[a-z]*$||; s|^test_||'
}

# find_test SUITE WORD: the test that is meant, in $test: by name, as a file of the
# tree, and of TAP tests by number or by what follows that.
find_test() {
	test=${2##*/}
	test=${test%.*}
	test=${test#test_}
	for candidate in $(tests_of "$1"); do
		case $1:$candidate in
			"$1:$test") ;;
			tap:"$test"_* | tap:0"$test"_* | tap:00"$test"_* | tap:[0-9][0-9][0-9]_"$test") ;;
			*) continue ;;
		esac
		test=$candidate
		return 0
	done
	die "no $1 test is called \"$2\"; there are:
$(tests_of "$1" | fmt -w 76)"
}

# choose_tests WORD...: suites, each with those of its tests that are wanted if
# not all are; the suites in $want.
choose_tests() {
	want='' suite='' unit_tests='' regress_tests='' isolation_tests='' tap_tests=''
	for word in "${@:-all}"; do
		case $word in
			all) word='unit regress isolation tap' suite='' ;;
			unit | regress | isolation | tap) suite=$word ;;
			*)
				[ -n "$suite" ] ||
					die "unknown suite \"$word\": unit, regress, isolation, tap or all"
				find_test "$suite" "$word"
				case $suite in
					unit) unit_tests="$unit_tests $test" ;;
					regress) regress_tests="$regress_tests $test" ;;
					isolation) isolation_tests="$isolation_tests $test" ;;
					tap) tap_tests="$tap_tests t/$test.pl" ;;
				esac
				continue
				;;
		esac
		want="$want $word"
	done
	UNIT=${unit_tests:-${UNIT:-}}
	REGRESS=${regress_tests:-${REGRESS:-}}
	ISOLATION=${isolation_tests:-${ISOLATION:-}}
	PROVE_TESTS=${tap_tests:-${PROVE_TESTS:-}}
	# for the runs on other servers
	export UNIT REGRESS ISOLATION PROVE_TESTS
}

suite_regress() {
	installcheck ISOLATION= ${REGRESS:+REGRESS="$REGRESS"}
}

suite_isolation() {
	if [ -z "${ISOLATION:-}" ]; then
		for spec in $(make -s -C "$work/tree" PG_CONFIG="$PG_CONFIG" with_llvm=no skipped_specs); do
			skip "specs/$spec.spec: this server has no injection points"
		done
	fi
	installcheck REGRESS= ${ISOLATION:+ISOLATION="$ISOLATION"}
}

# TAP tests make clusters of their own, as the user that may; two at a time where
# there is more than one processor.
suite_tap() {
	rc=0
	case ${PROVE_TESTS:-t/101_upgrade.pl} in
		*_upgrade*)
			# shellcheck disable=SC2086
			prepare_upgrade_targets ${upgradable:-}
			[ -n "$upgrade_targets${HYBRID_SERVER:-}" ] || skip "t/101_upgrade.pl: pg_upgrade (no later server to go to)"
			;;
	esac
	builds=
	case ${PROVE_TESTS:-t/082_other_builds.pl} in
		*_other_builds*) prepare_other_builds ;;
	esac
	compile_neighbour
	own "$work/tree"
	at_once=2
	[ "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)" -ge 2 ] || at_once=1
	# shellcheck disable=SC2046,SC2086
	run_suite sh -c 'cd / && "$@"' sh $(am_root && echo runuser -u "$owner" --) \
		env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE PATH="$PATH" HOME="$work/tree" TMPDIR="$work/tmp" \
		HYBRID_UPGRADE="${upgrade_targets# }" HYBRID_TEST_LIMIT="$file_limit" \
		HYBRID_BUILDS="$builds" HYBRID_PYTHON="$(applications_python)" HYBRID_SCHEMA_TOOLS="$(schema_tools)" \
		make -s -C "$work/tree" PG_CONFIG="$PG_CONFIG" with_llvm=no PROVE_FLAGS="-j$at_once" \
		${PROVE_TESTS:+PROVE_TESTS="$PROVE_TESTS"} prove_installcheck \
		>"$work/tap.log" 2>&1 || rc=$?
	grep -vE '^make|^\+\+\+' "$work/tap.log" || :
	report_time_limit "$rc"
	report_skipped_tap
	if [ "$rc" -ne 0 ]; then
		for name in $(sed -n 's|^t/\([^ ]*\)\.pl *(Wstat: .*|\1|p' "$work/tap.log"); do
			say "end of the log of t/$name.pl"
			tail -60 "$work/tree/tmp_check/log/regress_log_$name" || :
		done
		for log in "$work"/tree/tmp_check/log/*.log; do
			! grep -HE 'PANIC|TRAP|terminated by signal (6|11)' "$log" || :
		done
	fi
	tally "$rc" "$(count '^t/.* ok( |$)' "$work/tap.log")" \
		"$(count '^t/.* (Dubious|Failed)|^t/.*Wstat: [1-9]|^Parse errors' "$work/tap.log")"
}

# Whole files, by prove's summary, and single tests, by their logs.
report_skipped_tap() {
	sed -n 's|^\(t/[^ ]*\).* skipped: \(.*\)|\1: \2|p' "$work/tap.log" >"$work/skipped"
	for log in "$work"/tree/tmp_check/log/regress_log_*; do
		[ -f "$log" ] || continue
		sed -n "s|^\(\[.*s) \)\{0,1\}ok [0-9]* # skip \(.*\)|t/${log##*regress_log_}.pl: \2|p" "$log" | sort -u >>"$work/skipped"
	done
	while read -r line; do
		skip "$line"
	done <"$work/skipped"
}

# What needs no server: the programs of test/unit and, with one of the servers'
# headers, the fuzz targets for a second each; how the sources look; ./dev.
suite_unit() {
	unit_make unit check ${UNIT:+TESTS="$UNIT"}
	# a line for each program: NAME: N passed, N failed
	tally "$rc" "$(count '^[^ ]+: [0-9]+ passed, 0 failed' "$work/unit.log")" \
		"$(count '^[^ ]+: [0-9]+ passed, [1-9][0-9]* failed' "$work/unit.log")"
	[ -z "${UNIT:-}" ] || return 0
	unit_exports
	unit_layout
	unit_structure
	unit_words
	unit_tmpdir
	unit_faults
	[ -z "${HYBRID_SERVER:-}" ] || return 0
	unit_make fuzz -j2 run SECONDS=1
	tally "$rc" "$(count '^fuzz_[a-z]+: [0-9]+ executions' "$work/fuzz.log")" 0
}

# unit_make DIRECTORY ARGUMENT...: make in a directory of test/, with status $rc.
unit_make() {
	directory=$1
	shift
	rc=0
	run_suite make -s -C "$work/tree/test/$directory" PG_CONFIG="$PG_CONFIG" BUILD="$work/$directory" "$@" \
		>"$work/$directory.log" 2>&1 || rc=$?
	cat "$work/$directory.log"
	report_time_limit "$rc"
}

# Does the library export only what the server calls?  Names that begin with two
# underscores are the compiler's.
unit_exports() {
	rc=0
	nm -D --defined-only "$work/tree/hybridindex.so" >"$work/symbols" || rc=1
	sed 's/.* //' "$work/symbols" |
		grep -vE '^(__.*|Pg_magic_func|_PG_init|(pg_finfo_)?hybrid.*)$' >"$work/exports" && rc=1
	sed 's/^/exports: not meant for the server: /' "$work/exports"
	grep -q ' T hybridhandler$' "$work/symbols" || rc=1
	echo "exports: $((1 - rc)) passed, $rc failed"
	tally "$rc" "$((1 - rc))" "$rc"
}

# Does ./dev indent leave the sources as they are?
unit_layout() {
	if ! has_indent; then
		skip "layout of src/: ./dev indent --check fetches what it needs"
		return 0
	fi
	rc=0
	check_indent "$work/tree" "$work" >"$work/layout.log" || rc=$?
	if [ "$rc" -eq 0 ]; then
		echo "layout: 1 passed, 0 failed"
		tally 0 1 0
	else
		sed 's/^/layout: ..dev indent changes /' "$work/layout.log"
		echo "layout: 0 passed, 1 failed"
		tally 1 0 1
	fi
}

# Can each fault of test/mutants still be put into the sources?
unit_faults() {
	rc=0
	perl test/mutants/run --applies --tree "$work/tree" >"$work/faults.log" || rc=$?
	cat "$work/faults.log"
	tally "$rc" "$((rc == 0))" "$((rc != 0))"
}

# Have the sources the shape that they should?
unit_structure() {
	unit_script structure --self-test
	unit_script structure "$work/tree"
}

# Are the sentences of comments, messages and documents as easy to read as listed?
unit_words() {
	unit_script words --self-test
	unit_script words "$work/tree"
}

# unit_script NAME ARGUMENT: a script of test/dev that reports itself as one test.
unit_script() {
	rc=0
	perl "test/dev/$1" "$2" >"$work/$1.log" 2>&1 || rc=$?
	cat "$work/$1.log"
	tally "$rc" "$(count "^$1( self-test)?: 1 passed, 0 failed" "$work/$1.log")" \
		"$(count "^$1( self-test)?: 0 passed, 1 failed" "$work/$1.log")"
}

# ./dev refuses to copy this directory into itself.
unit_tmpdir() {
	rc=0
	mkdir "$work/tree/inside"
	for command in 'test regress like' psql; do
		# shellcheck disable=SC2086
		(cd "$work/tree" && TMPDIR=$PWD/inside timeout 60 ./dev $command) </dev/null >"$work/tmpdir.log" 2>&1 || :
		if ! grep -q '^dev: TMPDIR is in ' "$work/tmpdir.log"; then
			cat "$work/tmpdir.log"
			rc=1
		fi
	done
	rmdir "$work/tree/inside" || rc=1
	echo "TMPDIR in the sources: $((1 - rc)) passed, $rc failed"
	tally "$rc" "$((1 - rc))" "$rc"
}

# Regression tests with every server process under valgrind.  What it reports
# goes to one file for each process.
suite_valgrind() {
	valgrind_program
	statement_limit=$((20 * statement_limit)) suite_limit=$((20 * suite_limit))
	installcheck ISOLATION= REGRESS="$1"
	(cd / && as_owner "$bindir/pg_ctl" -D "$work/data" -m fast -w -t 300 stop) >/dev/null
	cluster_running=
	for log in "$work"/valgrind/*.log; do
		[ -s "$log" ] || continue
		cat "$log"
		failed=$((failed + 1))
	done
}

# $server_program, which runs the server under valgrind; it reports to files in
# $work/valgrind.
valgrind_program() {
	mkdir "$work/valgrind"
	server_program=$work/postgres-valgrind
	cat >"$server_program" <<-EOF
		#!/bin/sh
		exec valgrind --quiet --trace-children=yes --track-origins=yes --leak-check=no \\
			--read-var-info=no --num-callers=25 --error-limit=no --gen-suppressions=all \\
			--suppressions='$work/tree/test/dev/valgrind.supp' \\
			--log-file='$work/valgrind/%p.log' '$bindir/postgres' "\$@"
	EOF
	chmod 755 "$server_program"
	own "$work/valgrind"
}

# Have the library built with the sanitizers of addresses and undefined behaviour.
use_sanitizers() {
	COPT="${COPT:-} -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
	export COPT
}

# $server_program, which loads the sanitizer of addresses before the server.  What a
# sanitizer finds ends the server.
sanitizer_program() {
	server_program=$work/postgres-sanitize
	cat >"$server_program" <<-EOF
		#!/bin/sh
		export LD_PRELOAD='$(cc -print-file-name=libasan.so)'
		export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1
		export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
		exec '$bindir/postgres' "\$@"
	EOF
	chmod 755 "$server_program"
}
