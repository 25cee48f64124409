#
# Functions of ./dev: the Python packages whose migrations t/072_applications.pl
# runs, from PyPI, in a virtual environment in the cache; and the schema tools of
# t/136_schema_tools.pl, where there are npm and go.
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
	build_schema_tools "$applications_cache/schema_tools"
	chmod -R go+rX "$applications_cache"
	: >"$applications_cache/complete"
}

# build_schema_tools DIRECTORY: packages of npm, and a program with those of Go.
build_schema_tools() {
	mkdir "$1"
	if command -v npm >/dev/null 2>&1; then
		cp test/applications/schema_tools/package.json "$1"
		(cd "$1" && npm install --silent --no-audit --no-fund --ignore-scripts) ||
			die "npm could not install test/applications/schema_tools/package.json"
	fi
	if command -v go >/dev/null 2>&1; then
		(cd test/applications/schema_tools && go build -o "$1/go_tools" .) ||
			die "go could not build test/applications/schema_tools"
	fi
}

# That directory, or a copy, for t/136_schema_tools.pl.
schema_tools() {
	[ -d "$applications_cache/schema_tools" ] || return 0
	case ${PROVE_TESTS:-t/136_schema_tools.pl} in
		*_schema_tools*) ;;
		*) return 0 ;;
	esac
	directory=$applications_cache/schema_tools
	if ! (cd / && as_owner test -r "$directory/.") 2>/dev/null; then
		directory=$work/schema_tools
		cp -R "$applications_cache/schema_tools" "$directory"
	fi
	echo "$directory"
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
