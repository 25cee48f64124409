/*
 * match.h
 *		Indexes of partitions and children that are like an index above them.
 */
#ifndef HYB_MATCH_H
#define HYB_MATCH_H

#include "ddl/twin/twin.h"
#include "nodes/execnodes.h"

/* An index of a partitioned table or a parent, which exists or is going to be made. */
typedef struct HybDefinition
{
	IndexInfo  *info;
	Oid		   *collations;
	Oid		   *families;
	Oid			table;
	bool		is_constraint;
} HybDefinition;

/* Returns that of an index, whose table is locked. */
extern HybDefinition hyb_definition_of(Relation index);

/*
 * Returns true if the server would attach the index of the table if it had the access
 * method of the one above: as ATExecAttachPartitionIdx (commands/tablecmds.c).
 */
extern bool hyb_matches(Relation index, Relation table,
						const HybDefinition *above);

/*
 * An inheritance child's index corresponds to its parent's if it differs in nothing
 * but the access method, and if one role owns both.  TimescaleDB's chunks are such
 * children: INSERT ... ON CONFLICT fails there unless the access methods are equal.
 */

/*
 * Returns true if indexes of the child go with the parent's.  A temporary child of a
 * permanent table goes by itself: it may be another session's.
 */
extern bool hyb_goes_with(Oid child, Oid parent);

/*
 * Returns the indexes that correspond to this one and have its access method, one of
 * each of the tables, which are locked.
 */
extern List *hyb_indexes_below(Oid indexoid, const List *tables);

/*
 * Returns an index of this access method that the index corresponds to; InvalidOid if
 * there is none.  Keeps no lock.
 */
extern Oid	hyb_index_above(Oid indexoid, Oid access_method);

/*
 * Returns the index of a parent's PRIMARY KEY or UNIQUE constraint of columns with
 * these names (String).  InvalidOid if no parent of the same owner has one.  Locks
 * nothing, for the server locks no parent when a child gets a constraint.
 */
extern Oid	hyb_constraint_index_above(Oid relid, bool primary,
									   List *keys, List *included);

#endif							/* HYB_MATCH_H */
