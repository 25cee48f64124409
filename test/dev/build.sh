#
# Functions of ./dev: compiling the tree.  Objects are kept in the cache, for
# each directory and server, so that what did not change is not compiled again.
#

# compiled_tree PG_CONFIG DIRECTORY: make a directory with a copy of this tree,
# compiled for a server.
compiled_tree() {
	mkdir -m 755 "$2"
	copy_tree "$2"
	if enter_build_cache "$1"; then
		update_tree "$2" "$build_cache/tree"
		compile_tree "$build_cache/tree" "$1"
		rm -rf "$2"
		cp -a "$build_cache/tree" "$2"
		compile_programs "$1"
		leave_build_cache
	else
		compile_tree "$2" "$1"
	fi
}

compile_tree() {
	run_make "the build for $("$2" --version) failed" -j"$(processors)" -C "$1" PG_CONFIG="$2" all
	! grep -i warning "$work/make.log" || :
}

# The programs of test/unit and test/fuzz that are wanted, as far as they compile:
# their suite makes the rest, and reports it.
programs=
compile_programs() {
	for directory in $programs; do
		run make -s -k -j"$(processors)" -C "$build_cache/tree/test/$directory" PG_CONFIG="$1" \
			BUILD="$build_cache/$directory" all >/dev/null 2>&1 || :
		[ ! -d "$build_cache/$directory" ] || cp -a "$build_cache/$directory" "$work"
	done
	programs=
}

# What t/082_other_builds.pl installs beside this tree's library, in $builds.  The user
# that runs tests may not be able to read the server's headers.
prepare_other_builds() {
	builds=$work/builds
	mkdir -m 755 "$builds"
	run test/dev/other_builds.sh "$PG_CONFIG" "$work/tree" "$builds" >"$work/make.log" 2>&1 || {
		cat "$work/make.log"
		die "the other builds for t/082_other_builds.pl failed"
	}
}

# The library that stands for other extensions in TAP tests.
compile_neighbour() {
	run_make "the build of test/neighbours/library failed" -C "$work/tree/test/neighbours/library" PG_CONFIG="$PG_CONFIG"
}

# install_tree DIRECTORY PG_CONFIG: what was compiled for a server goes into a
# copy of it.
install_tree() {
	run_make "the installation failed" -C "$1" PG_CONFIG="$2" install
}

# run_make MESSAGE ARGUMENT...: what make prints goes to a log, which is shown if
# it fails.
run_make() {
	message=$1
	shift
	run make -s with_llvm=no "$@" >"$work/make.log" 2>&1 || {
		cat "$work/make.log"
		die "$message"
	}
}

processors() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# This directory without what builds and tests leave in it.
copy_tree() {
	tar -cf - --exclude=./.git --exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' --exclude='*.gc*' \
		--exclude=./results --exclude=./tmp_check --exclude=./output_iso --exclude=./build . |
		tar -xf - -C "$1"
}

# Take the cache of this directory and a server, $build_cache, for us alone; false
# if nothing can be kept.  Its name tells what objects depend on and make does
# not see.  What a build left that did not end is of no use.
enter_build_cache() {
	caches=$server_cache/build
	build_cache=$caches/${PWD##*/}-$(major_version "$1")-$(
		{
			pwd -P
			server_identity "$1"
			echo "${COPT:-} ${PROFILE:-}"
		} | cksum | tr ' ' -
	)
	(mkdir -p "$build_cache" && : >>"$build_cache/lock") 2>/dev/null || return 1
	# those of directories that are not used any more
	find "$caches" -mindepth 1 -maxdepth 1 -mtime +30 ! -path "$build_cache" -exec rm -rf {} +
	exec 9>>"$build_cache/lock"
	run flock 9
	[ ! -e "$build_cache/unfinished" ] || rm -rf "$build_cache/tree" "$build_cache/unit" "$build_cache/fuzz"
	: >"$build_cache/unfinished"
	mkdir -p "$build_cache/tree"
	touch "$build_cache"
}

# What changes when a server is built again, or another one takes its place.
server_identity() {
	ls -lL "$("$1" --bindir)/postgres"
	"$1"
}

leave_build_cache() {
	rm -f "$build_cache/unfinished"
	exec 9>&-
}

# update_tree FROM TO: make the sources in a directory those of another, and touch
# only those that differ, whatever their times say.
update_tree() {
	(cd "$1" && LC_ALL=C diff -rq -x '*.o' -x '*.d' -x '*.so' -x '*.gcno' . "$2") >"$work/changes" ||
		[ $? -eq 1 ] || die "cannot compare $1 with $2"
	while read -r line; do
		case $line in
			"Files "*)
				file=${line#Files ./}
				file=${file%% and *}
				rm -f "$2/$file"
				cp "$1/$file" "$2/$file"
				;;
			"Only in .: "* | "Only in ./"*)
				file=${line#Only in .}
				file=${file%%: *}/${file#*: }
				cp -R "$1$file" "$2$file"
				;;
			"Only in $2"*)
				# objects of a file that is gone are linked no more
				file=${line#Only in }
				file=${file%%: *}/${file#*: }
				rm -rf "$file" "${file%.c}.o" "${file%.c}.d" "$2/hybridindex.so"
				;;
		esac
	done <"$work/changes"
}
