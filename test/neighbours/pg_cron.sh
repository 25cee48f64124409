# extension: pg_cron
# preload: pg_cron hybridindex
# setting: cron.use_background_workers = on
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION pg_cron'
version pg_cron

# job COMMAND: how its first run ended.  Jobs start at full minutes only.
job() { sql -c "SELECT cron.schedule('* * * * *', \$job\$$1\$job\$)"; }
insert=$(job "INSERT INTO orders SELECT 2000000 + extract(epoch FROM clock_timestamp())::bigint, 1, 'job'")
nothing=$(job "INSERT INTO orders VALUES (1, 1, 'job'), (3000000, 1, 'job') ON CONFLICT DO NOTHING")
update=$(job "INSERT INTO orders VALUES (2, 1, 'job') ON CONFLICT (id) DO UPDATE SET note = 'upsert'")
ended() {
	must_become t "SELECT count(*) > 0 FROM cron.job_run_details WHERE jobid = $1 AND status IN ('succeeded', 'failed')"
	echo "$2: $(sql -c "SELECT status || ' ' || return_message FROM cron.job_run_details WHERE jobid = $1 ORDER BY runid LIMIT 1")"
}
ended "$insert" 'INSERT'
ended "$nothing" 'ON CONFLICT DO NOTHING'
ended "$update" 'ON CONFLICT (id) DO UPDATE'
sql -c 'SELECT cron.unschedule(jobid) FROM cron.job' >/dev/null
must_be '1 1' "SELECT count(*) FILTER (WHERE id = 3000000) || ' ' || count(*) FILTER (WHERE note = 'upsert') FROM orders"
agree
worked "jobs in background workers, with hybridindex in shared_preload_libraries"
