#
# Functions of ./dev: the server's own regression tests, four times on the same
# server: without the extension, with it and btree indexes, with
# hybridindex.replace_btree on, and with each index of hybrid_hot that can be, by
# test/server/hot_indexes.c.  test/server/compare says what differs between each two
# of these that follow each other.  The first difference is made by the mere presence
# of the extension.  Servers before 16 have no hybrid_hot.
#

server_tests_cache=$server_cache/server-tests

# The version whose tests a server is given: its own, or those of an earlier one
# where Debian has none.  What that expects does not matter here.
version_of_tests() {
	case $1 in
		16) echo 15 ;;
		*) echo "$1" ;;
	esac
}

# Have the tests of a version in the cache, with the C sources that they load.
provide_server_tests() {
	[ ! -d "$server_tests_cache/$1" ] || return 0
	missing=
	find_missing_to_fetch
	[ -z "$missing" ] || install_missing
	fetch_source "$1" "$work/source"
	mkdir -p "$server_tests_cache" "$work/tests"
	cp -R "$source/src/test/regress/." "$source/contrib/spi/refint.c" "$source/contrib/spi/autoinc.c" "$work/tests"
	mv "$work/tests" "$server_tests_cache/$1"
	rm -rf "$work/source"
}

# compile_test_library FILE DIRECTORY OPTION...: a library for the server at hand.
compile_test_library() {
	file=$1 library=$2/$(basename "$1" .c).so
	shift 2
	# shellcheck disable=SC2046
	gcc -fPIC -shared $("$PG_CONFIG" --cflags) $("$PG_CONFIG" --cppflags) -include postgres.h "$@" \
		-I"$("$PG_CONFIG" --includedir-server)" -o "$library" "$file" ||
		die "$file does not compile for $("$PG_CONFIG" --version)"
}

# Does the server at hand have the access method hybrid_hot?
has_hot_indexes() { [ "$(major_version "$PG_CONFIG")" -ge 16 ]; }

# Fails if the tests have left no index of hybrid_hot in a database: then they made none.
expect_hot_indexes() {
	hot=$(psql -X -A -t -d "$1" -c "SELECT count(*) FROM pg_class JOIN pg_am a ON a.oid = relam AND amname = 'hybrid_hot'")
	[ "$hot" -gt 0 ] || die "no index is hybrid_hot"
	echo "$hot indexes are hybrid_hot"
}

# The tests in $work/regress, with their libraries compiled for the server, whose
# headers include less than those of an earlier version.
compile_server_tests() {
	cp -R "$server_tests_cache/$1" "$work/regress"
	for library in regress refint autoinc; do
		compile_test_library "$work/regress/$library.c" "$work/regress" -w -include utils/array.h
	done
	! has_hot_indexes || compile_test_library test/server/hot_indexes.c "$work/regress"
	# what pg_regress of 16 does not know any more
	sed -i '/^ignore:/d' "$work/regress/parallel_schedule"
	chmod -R go+rX "$work/regress"
}

# run_server_tests NAME: without the extension ("absent"), with replace_btree off or
# on, or with indexes of hybrid_hot ("hot"), in a cluster of their own; results are in
# $work/NAME/results.
run_server_tests() {
	extension='' libraries=hybridindex replace=$1
	case $1 in
		absent) say "the server's tests, without the extension" ;;
		hot)
			say "the server's tests, with indexes of hybrid_hot"
			libraries="$work/regress/hot_indexes, hybridindex" replace=on
			;;
		*) say "the server's tests, replace_btree = $1" ;;
	esac
	if [ "$1" != absent ]; then
		extension="
			ALTER DATABASE regression SET hybridindex.replace_btree = $replace;
			\\c regression
			CREATE SCHEMA hyb;
			CREATE EXTENSION hybridindex SCHEMA hyb;"
	fi
	own_directories "$1"
	cluster_create
	[ "$1" = absent ] ||
		echo "session_preload_libraries = '$libraries'" | as_owner tee -a "$work/data/postgresql.conf" >/dev/null
	cluster_up
	cluster_is_default
	psql -X -q -v ON_ERROR_STOP=1 -f - <<-EOF || die "cannot create the database"
		CREATE DATABASE regression TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';
		ALTER DATABASE regression SET lc_messages = 'C';
		ALTER DATABASE regression SET lc_monetary = 'C';
		ALTER DATABASE regression SET lc_numeric = 'C';
		ALTER DATABASE regression SET lc_time = 'C';
		ALTER DATABASE regression SET bytea_output = 'hex';
		ALTER DATABASE regression SET timezone_abbreviations = 'Default';
		$extension
	EOF
	pgxs=$("$PG_CONFIG" --pgxs)
	# shellcheck disable=SC2046
	run timeout --kill-after=20 "$suite_limit" sh -c 'cd / && exec "$@"' sh \
		$(am_root && echo runuser -u "$owner" --) env PATH="$PATH" \
		"${pgxs%/makefiles/pgxs.mk}/test/regress/pg_regress" --bindir="$bindir" --user=postgres \
		--inputdir="$work/regress" --outputdir="$work/$1" --dlpath="$work/regress" \
		--schedule="$work/regress/parallel_schedule" --max-concurrent-tests=20 --max-connections=6 \
		--use-existing --dbname=regression >"$work/$1.log" 2>&1 || :
	tail -n 3 "$work/$1.log"
	[ "$1" != hot ] || expect_hot_indexes regression
	cp "$work/data/server.log" "$work/$1/server.log"
	(cd / && as_owner "$bindir/pg_ctl" -D "$work/data" -m fast -w -t 300 stop) >/dev/null
	find "$work/data" -mindepth 1 -delete
}

# Compare the runs on the server at hand.  What differs, and the server's logs,
# go to build/server-tests/VERSION.
compare_server_tests() {
	version=$(major_version "$PG_CONFIG")
	provide_server_tests "$(version_of_tests "$version")"
	compile_server_tests "$(version_of_tests "$version")"
	differences=$PWD/build/server-tests/$version
	rm -rf "$differences"
	runs='absent off on'
	! has_hot_indexes || runs="$runs hot"
	for run in $runs; do
		run_server_tests "$run"
		mkdir -p "$differences/$run"
		cp -R "$work/$run/results" "$work/$run/server.log" "$differences/$run"
	done
	say "what differs"
	perl test/server/compare --version "$version" --schedule "$work/regress/parallel_schedule" \
		"$differences"
}
