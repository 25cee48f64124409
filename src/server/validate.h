/*
 * validate.h
 *		Operator classes, as the server asks about them.
 */
#ifndef HYB_VALIDATE_H
#define HYB_VALIDATE_H

#include "access/amapi.h"

extern bool hyb_amvalidate(Oid opclassoid);
extern void hyb_amadjustmembers(Oid opfamilyoid, Oid opclassoid,
								List *operators, List *functions);
extern void hyb_check_column_classes(Relation index, int elevel);

#endif							/* HYB_VALIDATE_H */
