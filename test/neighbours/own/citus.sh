# Citus's own tests: own/citus.sh SETTING DIRECTORY, with hybridindex.replace_btree so, and
# results in that directory.  Its runner starts a coordinator and its workers, and leaves
# results without names and numbers that vary.
set -eu
. "$(dirname "$0")/common.sh"
regress=$SOURCE/src/test/regress
export PATH="$regress/bin:$PATH"
cd "$regress"

# schedule FILE NAME...: the schedule with those tests only, in its order
schedule() {
	file=$1
	shift
	awk -v names=" $* " '/^test:/ {
		line = ""
		for (i = 2; i <= NF; i++)
			if (index(names, " " $i " "))
				line = line " " $i
		if (line != "")
			print "test:" line
	}' "$file"
}

# run_schedule NAME: the one in schedule.NAME
run_schedule() {
	rm -rf results
	perl pg_regress_multi.pl --pgxsdir="$PGXS" --bindir="$bindir" --libdir="$("$PG_CONFIG" --libdir)" \
		--majorversion="$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')" --citus_abs_srcdir="$regress" \
		--postgres-builddir="$PGXS" --postgres-srcdir="$PGXS" --worker-count=6 \
		--load-extension=citus --load-extension=hybridindex \
		--server-option="shared_preload_libraries = 'citus,pg_stat_statements,hybridindex'" \
		--server-option="hybridindex.replace_btree = $setting" ${plugins:+--server-option="$plugins"} \
		-- --inputdir="$regress" --schedule="schedule.$1" >"$results/$1.log" 2>&1 || true
	for result in results/*.out; do
		cp "$result" "$results/$1.$(basename "$result")"
	done
	cat tmp_check/*/log/postmaster.log >"$results/$1.server.log"
	ended "$results/$1.log"
}

plugins=
! "$bindir/postgres" --describe-config 2>/dev/null | grep -q '^output_plugin_libraries' ||
	plugins="output_plugin_libraries = 'pgoutput, test_decoding, citus'"

set_up='multi_test_helpers multi_test_helpers_superuser multi_create_fdw multi_cluster_management multi_test_catalog_views'
tables='multi_create_table multi_create_table_superuser multi_master_protocol multi_load_data multi_load_data_superuser
	multi_behavioral_analytics_create_table multi_behavioral_analytics_create_table_superuser'
# shellcheck disable=SC2086
schedule multi_1_schedule $set_up $tables \
	multi_insert_select_non_pushable_queries multi_insert_select multi_insert_select_conflict multi_row_insert \
	insert_select_into_local_table alter_index multi_modifications multi_upsert multi_shard_update_delete \
	multi_partitioning_utils replicated_partitioned_table multi_partitioning drop_partitioned_table \
	multi_fix_partition_shard_index_names partition_wise_join multi_index_statements multi_alter_table_statements \
	alter_table_add_column multi_alter_table_add_constraints multi_alter_table_add_constraints_without_name \
	multi_alter_table_add_foreign_key_without_name sequential_modifications foreign_key_to_reference_table \
	validate_constraint multi_modifying_xacts multi_generate_ddl_commands pg_dump multi_copy multi_schema_support \
	multi_truncate multi_foreign_key multi_foreign_key_relation_graph >schedule.statements
cp split_schedule schedule.splits
# shellcheck disable=SC2086
schedule operations_schedule $set_up worker_copy_table_to_node shard_rebalancer_unit shard_rebalancer \
	background_rebalance foreign_key_to_reference_shard_rebalance multi_move_mx shard_move_deferred_delete \
	multi_colocated_shard_rebalance citus_drain_node >schedule.moves
for part in statements splits moves; do
	run_schedule "$part"
done
