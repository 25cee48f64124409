# What the scripts here share.  run gives them SOURCE, PG_CONFIG and PGXS.
setting=$1
results=$2
bindir=$("$PG_CONFIG" --bindir)

# ended LOG: say how a runner's tests went, and fail if none ran.
ended() {
	grep -c -E '^(ok|not ok) ' "$1" >/dev/null || {
		tail -n 30 "$1" >&2
		exit 1
	}
	echo "replace_btree = $setting: $(grep -c -E '^(ok|not ok) ' "$1") tests, $(grep -c '^not ok ' "$1" || true) not as expected ($(basename "$1" .log))"
}
