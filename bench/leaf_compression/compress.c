/*
 * compress.c
 *		What general compression would make of leaves: of an index's as they
 *		are, of the same entries as they came, and front coded.
 *
 *	compress INDEX-FILE < ENTRIES
 *
 * ENTRIES are in index order, a line each: the key in hexadecimal digits, a
 * tab, and its TID as (block,offset).  Printed are bytes an entry, tab-separated:
 * for each form the leaves themselves, LZ4 of a leaf, LZ4 of eight, zstd of a
 * leaf, zstd of eight.
 */
#include <lz4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define PAGE_BYTES		8192
#define GROUP			8
#define ZSTD_LEVEL		3

/* src/store/page.h */
#define PD_LOWER		12
#define PD_SPECIAL		16
#define OPAQUE_KIND		16
#define KIND_LEAF		2

typedef struct Form
{
	const char *name;
	uint8_t		page[PAGE_BYTES];
	size_t		used;
	uint8_t		group[GROUP * PAGE_BYTES];
	size_t		group_used;
	int			pages;			/* in the group */
	uint64_t	plain;
	uint64_t	lz4;
	uint64_t	lz4_group;
	uint64_t	zstd;
	uint64_t	zstd_group;
} Form;

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t
lz4_bytes(const uint8_t *data, size_t len)
{
	static char out[LZ4_COMPRESSBOUND(GROUP * PAGE_BYTES)];

	return least(len, (size_t) LZ4_compress_default((const char *) data, out, (int) len, sizeof(out)));
}

static size_t
zstd_bytes(const uint8_t *data, size_t len)
{
	static char out[2 * GROUP * PAGE_BYTES];
	size_t		n = ZSTD_compress(out, sizeof(out), data, len, ZSTD_LEVEL);

	return ZSTD_isError(n) ? len : least(len, n);
}

static void
end_group(Form *form)
{
	form->lz4_group += lz4_bytes(form->group, form->group_used);
	form->zstd_group += zstd_bytes(form->group, form->group_used);
	form->group_used = 0;
	form->pages = 0;
}

static void
end_page(Form *form)
{
	if (form->used == 0)
		return;
	form->plain += form->used;
	form->lz4 += lz4_bytes(form->page, form->used);
	form->zstd += zstd_bytes(form->page, form->used);
	memcpy(form->group + form->group_used, form->page, form->used);
	form->group_used += form->used;
	form->used = 0;
	if (++form->pages == GROUP)
		end_group(form);
}

static void
put(Form *form, const void *bytes, size_t len)
{
	memcpy(form->page + form->used, bytes, len);
	form->used += len;
}

static void
print_form(Form *form, uint64_t n)
{
	end_page(form);
	end_group(form);
	printf("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", form->name, (double) form->plain / n,
		   (double) form->lz4 / n, (double) form->lz4_group / n, (double) form->zstd / n,
		   (double) form->zstd_group / n);
}

/* Leaves in the order of the file, without their holes. */
static void
add_index(Form *form, const char *path)
{
	FILE	   *f = fopen(path, "rb");
	uint8_t		page[PAGE_BYTES];

	if (f == NULL)
	{
		perror(path);
		exit(1);
	}
	while (fread(page, PAGE_BYTES, 1, f) == 1)
	{
		uint16_t	lower;
		uint16_t	special;
		uint16_t	kind;

		memcpy(&lower, page + PD_LOWER, 2);
		memcpy(&special, page + PD_SPECIAL, 2);
		if (special > PAGE_BYTES - OPAQUE_KIND - 2 || lower > special)
			continue;
		memcpy(&kind, page + special + OPAQUE_KIND, 2);
		if (kind != KIND_LEAF)
			continue;
		put(form, page, lower);
		end_page(form);
	}
	fclose(f);
}

static size_t
parse_hex(const char *text, uint8_t *bytes)
{
	size_t		n = 0;
	unsigned	byte;

	for (; *text != '\t' && sscanf(text, "%2x", &byte) == 1; text += 2)
		bytes[n++] = (uint8_t) byte;
	return n;
}

int
main(int argc, char **argv)
{
	static Form coded = {.name = "leaves"};
	static Form plain = {.name = "entries"};
	static Form front = {.name = "front coded"};
	static uint8_t last[PAGE_BYTES];
	size_t		last_len = 0;
	uint64_t	n = 0;
	char	   *line = NULL;
	size_t		room = 0;

	if (argc != 2)
	{
		fprintf(stderr, "usage: compress INDEX-FILE < ENTRIES\n");
		return 1;
	}
	add_index(&coded, argv[1]);
	while (getline(&line, &room, stdin) > 0)
	{
		static uint8_t key[PAGE_BYTES];
		size_t		len = parse_hex(line, key);
		unsigned	block;
		unsigned	offset;
		uint8_t		tid[6];
		uint16_t	lens[2] = {0, (uint16_t) len};
		size_t		common = 0;

		if (strchr(line, '\t') == NULL || len > 2000 ||
			sscanf(strchr(line, '\t'), " (%u,%u)", &block, &offset) != 2)
		{
			fprintf(stderr, "compress: not an entry: %s", line);
			return 1;
		}
		memcpy(tid, &block, 4);
		memcpy(tid + 4, &offset, 2);

		if (plain.used + len + 8 > PAGE_BYTES)
			end_page(&plain);
		put(&plain, &lens[1], 2);
		put(&plain, key, len);
		put(&plain, tid, 6);

		if (front.used + len + 8 > PAGE_BYTES)
		{
			end_page(&front);
			last_len = 0;
		}
		while (common < least(last_len, len) && common < 255 && key[common] == last[common])
			common++;
		lens[0] = (uint16_t) common;
		lens[1] = (uint16_t) (len - common);
		put(&front, &lens[0], 1);
		put(&front, &lens[1], 1);
		put(&front, key + common, len - common);
		put(&front, tid, 6);
		memcpy(last, key, len);
		last_len = len;
		n++;
	}
	free(line);
	if (n == 0)
		return 1;
	print_form(&coded, n);
	print_form(&plain, n);
	print_form(&front, n);
	return 0;
}
