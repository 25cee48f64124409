#!/bin/sh
#
# other_builds.sh PG_CONFIG SOURCES DIRECTORY: compile the library as other
# versions of the sources would be, for t/082_other_builds.pl.  What is compiled in
# SOURCES already is not compiled again.  Into DIRECTORY go
#
#	larger.so	needs more shared memory
#	shuffled.so	as much, with fields in another order
#	reworded.so	with the same objects: a comment differs
#
set -eu
pg_config=$1 directory=$3
tree=$(mktemp -d "$directory/tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
tar -C "$2" -cf - --exclude=./tmp_check --exclude=./.git . | tar -C "$tree" -xf -

# make_build NAME FILE SUBSTITUTION
make_build() {
	cp -p "$tree/$2" "$tree/original"
	perl -0pi -e "$3 or die qq($2 is not what other_builds.sh knows\n)" "$tree/$2"
	make -s with_llvm=no -C "$tree" PG_CONFIG="$pg_config" all
	mv "$tree/hybridindex.so" "$directory/$1.so"
	cat "$tree/original" >"$tree/$2"
}

make_build larger src/shared/workers.c 's/\n\} Workers;/\n\tchar\t\tmore[4096];\n} Workers;/'
make_build shuffled src/shared/shared_arena.c 's/(\tdsm_handle\thandle;\n)(\tuint32\t\tnchunks;\n)/$2$1/'
make_build reworded src/shared/shared_arena.c 's/The arena in shared memory/The arena of shared memory/'
