/*
 * structure.h
 *		Ordered structures in memory that are compared: each keeps a copy of
 *		every entry, key and place in the log, as the dynamic stage has to.
 */
#ifndef STRUCTURE_H
#define STRUCTURE_H

#include <stddef.h>
#include <stdint.h>

/* What all of them keep of an entry; as HybTreeEntry. */
typedef struct Record
{
	uint16_t	tid[3];
	uint16_t	offset;			/* place in the log */
	uint32_t	block;
	uint16_t	len;			/* bytes of the key */
	uint16_t	keylen;
	uint8_t		key[];
} Record;

typedef struct Key
{
	const uint8_t *bytes;
	uint32_t	len;
	uint32_t	number;			/* in order of insertion: stands for its TID */
} Key;

/* Keys differ, and none is a prefix of another. */
typedef struct Structure
{
	const char *name;
	void		(*init) (const Key *keys, uint32_t n);
	void		(*insert) (const Key *key);

	/* the number of an entry with this key, UINT32_MAX: there is none */
	uint32_t	(*look_up) (const Key *key);

	/* sum of the numbers of n entries from this key on */
	uint64_t	(*scan) (const Key *from, int n);

	/* all memory, copies of entries included */
	size_t		(*bytes) (void);
} Structure;

extern const Structure art_structure;
extern const Structure skip_list_structure;
extern const Structure tree_structure;
extern const Structure compact_tree_structure;

#endif							/* STRUCTURE_H */
