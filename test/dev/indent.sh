#
# Functions of ./dev: the layout of the C sources, by the server's own pgindent
# and the program that it calls, pg_bsd_indent; both are those of PostgreSQL 18.
#

indent_cache=$server_cache/indent

# The program is put there last.
has_indent() { [ -x "$indent_cache/pg_bsd_indent" ]; }

# The program wants no more of a server than libpgport: any will do.
build_indent() {
	require demo
	missing=
	find_missing_to_fetch
	[ -z "$missing" ] || install_missing
	scratch_directory
	fetch_source 18 "$scratch"
	tools=$source/src/tools
	# headers of servers before 18 lack pg_noreturn
	# shellcheck disable=SC2046
	gcc -O2 -w -Dpg_noreturn=_Noreturn -I"$tools/pg_bsd_indent" $("$PG_CONFIG" --cppflags) \
		-I"$("$PG_CONFIG" --includedir-server)" -o "$scratch/pg_bsd_indent" "$tools"/pg_bsd_indent/*.c \
		-L"$("$PG_CONFIG" --libdir)" -L"$("$PG_CONFIG" --pkglibdir)" -lpgcommon -lpgport ||
		die "the build of pg_bsd_indent failed"
	mkdir -p "$indent_cache"
	cp "$tools/pgindent/pgindent" "$tools/pgindent/typedefs.list" "$indent_cache"
	mv "$scratch/pg_bsd_indent" "$indent_cache"
	rm -rf "$scratch"
}

# The names of the types that the sources in a directory define.
list_typedefs() {
	find "$1" -name '*.[ch]' -exec cat {} + | perl -0777 -ne '
		s{/\*.*?\*/}{}gs;
		while (/^\s*typedef\b((?:[^;{}]|(\{(?:[^{}]++|(?2))*\}))*);/mg)
		{
			my $type = $1;
			$type =~ s/(\{(?:[^{}]++|(?1))*\})//;
			print "$1 " if $type =~ /\(\s*\*\s*(\w+)\s*\)/ || $type =~ /(\w+)\s*$/;
		}'
}

# run_pgindent DIRECTORY WORK [OPTION...]: on the sources in a directory; what
# pgindent leaves behind when it is stopped goes to another.
run_pgindent() {
	sources=$(cd "$1" && pwd) indent_work=$2
	shift 2
	(
		cd "$indent_work" &&
			perl "$indent_cache/pgindent" --indent="$indent_cache/pg_bsd_indent" \
				--typedefs="$indent_cache/typedefs.list" \
				--list-of-typedefs="$(list_typedefs "$sources")" "$@" "$sources"
	)
}

# check_indent TREE WORK: the files of src/ that it would change.
check_indent() {
	rc=0
	run_pgindent "$1/src" "$2" --check --diff >"$2/indent.diff" || rc=$?
	sed -n 's|^--- .*/\(src/[^	]*\)	.*|\1|p' "$2/indent.diff"
	return "$rc"
}
