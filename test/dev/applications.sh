#
# Functions of ./dev: the Python packages whose migrations t/035_applications.pl
# runs, from PyPI, in a virtual environment in the cache.
#

applications_cache=$server_cache/applications

# The marker is put there last.
has_applications() { [ -e "$applications_cache/complete" ]; }

# The distribution's Python can make virtual environments.
require_virtual_environments() {
	missing=
	/usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || missing='python3 python3-venv'
	[ -z "$missing" ] || install_missing
}

# Of the distribution's Python, which user postgres can use too.
build_applications() {
	require_virtual_environments
	rm -rf "$applications_cache"
	/usr/bin/python3 -m venv "$applications_cache"
	"$applications_cache/bin/python" -m pip install -q -r test/applications/requirements.txt ||
		die "pip could not install test/applications/requirements.txt"
	chmod -R go+rX "$applications_cache"
	: >"$applications_cache/complete"
}

# That Python, if the owner of servers can use it.
applications_python() {
	if has_applications && (cd / && as_owner "$applications_cache/bin/python" -c 'import django') 2>/dev/null; then
		echo "$applications_cache/bin/python"
	fi
}
