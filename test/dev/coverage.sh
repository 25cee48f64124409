#
# Functions of ./dev: which lines of src/ the tests run, by gcov.
#

# The extension is compiled for gcov, not optimized.  Its processes write their
# counters below $work/counters when they exit; those that are killed write none.
build_for_coverage() {
	COPT='--coverage -O0'
	export COPT
	build
	mkdir -m 755 "$work/counters"
	own "$work/counters"
	GCOV_PREFIX=$work/counters
	export GCOV_PREFIX
}

# A suite, with its tests' results in $passed and $failed.
coverage_suite() {
	say "$1 tests"
	case $1 in
		unit)
			(
				unset GCOV_PREFIX
				unit_make unit check ${UNIT:+TESTS="$UNIT"} SANITIZE="$COPT"
				exit "$rc"
			) || failed=$((failed + 1))
			;;
		*) "suite_$1" ;;
	esac
}

# What gcov says about each object of the library and of the unit tests.
run_gcov() {
	find "$work/counters" -path '*/tree/src/*.gcda' | while read -r counters; do
		mv "$counters" "$work/tree/src/${counters##*/tree/src/}"
	done
	(cd "$work/tree" && find src -name '*.gcno' -exec gcov --stdout {} +)
	[ ! -d "$work/unit" ] ||
		(cd "$work/tree/test/unit" && find "$work/unit" -name '*.gcda' -exec gcov --stdout {} +)
}

cmd_coverage() {
	adding=
	if [ "${1:-}" = --add ]; then
		adding=yes
		shift
	fi
	choose_tests "$@"
	command -v gcov >/dev/null 2>&1 || die "there is no gcov (apt install gcc)"
	prefer_cached_server
	require test
	workspace
	[ -n "$adding" ] || rm -rf build/coverage
	mkdir -p build/coverage
	build_for_coverage
	statement_limit=$((3 * statement_limit)) file_limit=$((3 * file_limit)) suite_limit=$((3 * suite_limit))
	passed=0 failed=0
	for suite in $want; do
		coverage_suite "$suite"
	done
	# what still runs writes its counters when it ends
	[ -z "$cluster_running" ] || (cd / && as_owner "$bindir/pg_ctl" -D "$work/data" -m fast -w -t 300 stop) >/dev/null
	cluster_running=
	say "lines of src/ that tests ran"
	run_gcov 2>"$work/gcov.log" | perl test/dev/coverage "$work/tree" build/coverage
	[ -z "$skipped" ] || echo "SKIPPED, and so not tested:$skipped"
	[ "$failed" -eq 0 ] || die "$failed tests failed"
}
