# TimescaleDB's own tests: own/timescaledb.sh SETTING DIRECTORY, with
# hybridindex.replace_btree so, and results in that directory.  CMake has put schedules into
# the folder build, and some tests beside those of the sources.
set -eu
. "$(dirname "$0")/common.sh"
cat >"$results/postgresql.conf" <<-EOF
	shared_preload_libraries = 'timescaledb,hybridindex'
	hybridindex.replace_btree = $setting
	timescaledb.telemetry_level = off
	fsync = off
EOF
# databases are made from template1, which this file is run in
cat >>"$SOURCE/test/sql/utils/testsupport.sql" <<-'EOF'
	DROP EXTENSION IF EXISTS hybridindex;
	CREATE SCHEMA IF NOT EXISTS hyb;
	GRANT USAGE ON SCHEMA hyb TO PUBLIC;
	CREATE EXTENSION hybridindex SCHEMA hyb;
EOF
export PG_BINDIR="$bindir" PG_REGRESS="$PGXS/src/test/regress/pg_regress" PG_REGRESS_USE_FAKETIME=0
export TEST_PGHOST=localhost TEST_PGPORT=65435
export TEST_PGUSER=default_perm_user TEST_DBNAME=single TEST_ROLE_SUPERUSER=super_user USER=postgres

# run_tests FOLDER PATTERN...: those tests of that folder
run_tests() {
	folder=$1
	shift
	rm -rf "$SOURCE/build/$folder/results" "$SOURCE/build/$folder/testcluster"
	TESTS=$* EXE_DIR=$SOURCE/$folder TEST_SCHEDULE=$SOURCE/build/$folder/test_schedule \
		TEST_INPUT_DIR=$SOURCE/$folder TEST_OUTPUT_DIR=$SOURCE/build/$folder bash "$SOURCE/test/pg_regress.sh" \
		--create-role=super_user,default_perm_user,default_perm_user_2,test_role_1,test_role_2,test_role_3,test_role_4,test_role_read_only \
		--dbname=single --launcher="$SOURCE/test/runner.sh" --bindir="$bindir" --dlpath="$SOURCE/build/src" \
		--inputdir="$SOURCE/$folder" --outputdir="$SOURCE/build/$folder" --port="$TEST_PGPORT" \
		--temp-instance="$SOURCE/build/$folder/testcluster" --temp-config="$SOURCE/build/$folder/postgresql.conf" \
		--temp-config="$results/postgresql.conf" >"$results/${folder%%/*}.log" 2>&1 || true
	for result in "$SOURCE/build/$folder"/results/*.out; do
		mv "$result" "$results/${folder%%/*}.$(basename "$result")"
	done
	ended "$results/${folder%%/*}.log"
}
run_tests test upsert insert insert_many insert_single insert_returning copy copy_where create_chunks create_hypertable \
	create_table chunks chunk_utils constraint index alter ddl update delete truncate merge ts_merge trigger\* cluster \
	vacuum multi_transaction_index
run_tests tsl/test compression compression_\* compress_dml\* recompress\* direct_compress_copy cagg cagg_\* chunk_api \
	chunk_merge chunk_utils\* merge_chunks split_chunk attach_chunk detach_chunk foreign_keys_test reorder move
