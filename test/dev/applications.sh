#
# Functions of ./dev: the Python packages whose migrations t/072_applications.pl
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

# That Python, for t/072_applications.pl; a copy of it if the owner of servers cannot
# enter the cache, as where it is root's.
applications_python() {
	has_applications || return 0
	case ${PROVE_TESTS:-t/072_applications.pl} in
		*_applications*) ;;
		*) return 0 ;;
	esac
	environment=$applications_cache
	if ! (cd / && as_owner "$environment/bin/python" -c 'import django') 2>/dev/null; then
		environment=$work/applications
		cp -R "$applications_cache" "$environment"
	fi
	echo "$environment/bin/python"
}
