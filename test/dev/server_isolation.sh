#
# Functions of ./dev: the server's own isolation tests, with btree indexes, with
# hybridindex.replace_btree on, and with each index of hybrid_hot that can be, as
# ./dev server-tests makes them.  Merges go on all the time.  Results are to be the same.
#

isolation_tests_cache=$server_cache/isolation-tests

# Have the tests of a version in the cache.
provide_isolation_tests() {
	[ ! -d "$isolation_tests_cache/$1" ] || return 0
	missing=
	find_missing_to_fetch
	[ -z "$missing" ] || install_missing
	fetch_source "$1" "$work/source"
	mkdir -p "$isolation_tests_cache" "$work/isolation"
	cp -R "$source/src/test/isolation/." "$work/isolation"
	mv "$work/isolation" "$isolation_tests_cache/$1"
	rm -rf "$work/source"
}

# run_isolation_tests VERSION NAME: with replace_btree off or on, or with indexes of
# hybrid_hot ("hot"); results are in $work/isolation-NAME/results.
run_isolation_tests() {
	libraries=hybridindex replace=$2
	if [ "$2" = hot ]; then
		say "the server's isolation tests, with indexes of hybrid_hot"
		libraries="'$work/hot_indexes', hybridindex" replace=on
	else
		say "the server's isolation tests, replace_btree = $2"
	fi
	psql -X -q -v ON_ERROR_STOP=1 -f - <<-EOF || die "cannot create the database"
		DROP DATABASE IF EXISTS isolation_regression;
		CREATE DATABASE isolation_regression TEMPLATE template0;
		ALTER DATABASE isolation_regression SET session_preload_libraries = $libraries;
		ALTER DATABASE isolation_regression SET hybridindex.replace_btree = $replace;
		\c isolation_regression
		CREATE SCHEMA hyb;
		CREATE EXTENSION hybridindex SCHEMA hyb;
	EOF
	pgxs=$("$PG_CONFIG" --pgxs)
	mkdir "$work/isolation-$2"
	run timeout --kill-after=20 "$suite_limit" \
		"${pgxs%/makefiles/pgxs.mk}/test/isolation/pg_isolation_regress" --bindir="$bindir" \
		--inputdir="$isolation_tests_cache/$1" --outputdir="$work/isolation-$2" \
		--schedule="$isolation_tests_cache/$1/isolation_schedule" \
		--use-existing --dbname=isolation_regression >"$work/isolation-$2.log" 2>&1 || :
	ran=$(count '^(test |ok |not ok )' "$work/isolation-$2.log")
}

# Compare what the tests give on the server at hand.
compare_isolation_tests() {
	version=$(major_version "$PG_CONFIG")
	tests=$(version_of_tests "$version")
	provide_isolation_tests "$tests"
	cluster_start
	# 15 sets none that it does not know
	psql -X -q -v ON_ERROR_STOP=1 -c "LOAD 'hybridindex'" -c 'ALTER SYSTEM SET hybridindex.merge_floor = 16' \
		-c 'ALTER SYSTEM SET hybridindex.merge_step_pages = 1' -c 'SELECT pg_reload_conf()' >/dev/null ||
		die "cannot have merges all the time"
	names=on
	if has_hot_indexes; then
		names='on hot'
		compile_test_library test/server/hot_indexes.c "$work"
	fi
	run_isolation_tests "$tests" off
	expected=$ran
	for name in $names; do
		run_isolation_tests "$tests" "$name"
		diff -r "$work/isolation-off/results" "$work/isolation-$name/results" &&
			[ "$ran" = "$expected" ] && [ "$ran" -gt 0 ] || die "results differ, of $expected and $ran tests"
	done
	say "PostgreSQL $version: $ran isolation tests give the same"
}
