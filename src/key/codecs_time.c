/*
 * codecs_time.c
 *		Codecs of date, time, timestamp and timestamptz.
 *
 * All are signed integers with their infinities at the ends of the range.
 *
 * Cross-type comparison follows date_cmp_timestamp and its relatives
 * (utils/adt/date.c, timestamp.c).  The type without a time zone is cast, with the
 * session's zone if the other type has one.  That is exact for a constant.  For a
 * column we have to cast the constant the other way, which keeps the order only
 * while the zone's offset does not change.  Near a change of offset the position is
 * widened to either side.
 */
#include "key/codec.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/timestamp.h"

/*
 * Days around an instant in which a change of offset can matter.  Offsets of
 * a zone differ by little more than a day (a place that crossed the date
 * line), and the server looks for the offset of a local time up to a day away.
 */
#define HYB_ZONE_MARGIN_DAYS	3

static uint64
date_to_int(Datum value)
{
	return hyb_order_int32(DatumGetDateADT(value));
}

static Datum
date_from_int(uint64 value)
{
	return DateADTGetDatum(hyb_unorder_int32(value));
}

/* TimeADT, Timestamp and TimestampTz are int64 */
static uint64
time_to_int(Datum value)
{
	return hyb_order_int64(DatumGetInt64(value));
}

static Datum
time_from_int(uint64 value)
{
	return Int64GetDatum(hyb_unorder_int64(value));
}

/*
 * Set a position at a timestamp (of either kind) that the server's cast gave, or
 * beside all finite ones if it did not fit.
 */
static void
timestamp_position(Timestamp ts, int overflow, HybCast *out)
{
	Timestamp	below = ts;
	Timestamp	above = ts;

	out->exact = overflow == 0;
	if (overflow > 0)
	{
		/* above all finite timestamps, below infinity */
		below = END_TIMESTAMP - 1;
		TIMESTAMP_NOEND(above);
	}
	else if (overflow < 0)
	{
		TIMESTAMP_NOBEGIN(below);
		above = MIN_TIMESTAMP;
	}
	out->lo = TimestampGetDatum(below);
	out->hi = TimestampGetDatum(above);
}

/*
 * The local time of an instant; *overflow tells if it is beyond what a
 * timestamp can hold.  Returns true if the session's zone keeps its offset
 * around it, so that local times and instants have the same order.
 */
static bool
timestamptz_local(TimestampTz instant, Timestamp *local, int *overflow)
{
	pg_time_t	from = timestamptz_to_time_t(instant) -
		HYB_ZONE_MARGIN_DAYS * SECS_PER_DAY;
	pg_time_t	boundary;
	long int	before_gmtoff;
	long int	after_gmtoff;
	int			before_isdst;
	int			after_isdst;
	int			changes;

	changes = pg_next_dst_boundary(&from, &before_gmtoff, &before_isdst,
								   &boundary, &after_gmtoff, &after_isdst,
								   session_timezone);
	*local = instant;
	*overflow = 0;
	if (changes < 0)
		return false;
	*local += before_gmtoff * USECS_PER_SEC;
	if (*local >= END_TIMESTAMP)
		*overflow = 1;
	else if (*local < MIN_TIMESTAMP)
		*overflow = -1;
	return changes == 0 ||
		boundary > from + 2 * HYB_ZONE_MARGIN_DAYS * SECS_PER_DAY;
}

/*
 * The local times that the server casts to an instant, which is finite.  Returns
 * their number, or -1 if unknown.  Each is the instant's local
 * time by an offset that is in force at most HYB_ZONE_MARGIN_DAYS away: twice
 * where clocks were put forward, none where they were put back.
 */
static int
timestamptz_locals(TimestampTz instant, Timestamp *locals)
{
	pg_time_t	from = timestamptz_to_time_t(instant) -
		HYB_ZONE_MARGIN_DAYS * SECS_PER_DAY;
	pg_time_t	end = from + 2 * HYB_ZONE_MARGIN_DAYS * SECS_PER_DAY;
	long int	offsets[HYB_MAX_EQUALS];
	int			noffsets = 0;
	int			nlocals = 0;
	pg_time_t	boundary;
	long int	before_gmtoff;
	long int	after_gmtoff;
	int			before_isdst;
	int			after_isdst;
	int			changes;

	do
	{
		int			i = 0;

		changes = pg_next_dst_boundary(&from, &before_gmtoff, &before_isdst,
									   &boundary, &after_gmtoff,
									   &after_isdst, session_timezone);
		if (changes < 0)
			return -1;
		while (i < noffsets && offsets[i] != before_gmtoff)
			i++;
		if (i == HYB_MAX_EQUALS)
			return -1;
		offsets[i] = before_gmtoff;
		noffsets = Max(noffsets, i + 1);
		from = boundary;
	} while (changes > 0 && boundary <= end);

	for (int i = 0; i < noffsets; i++)
	{
		Timestamp	local = instant + offsets[i] * USECS_PER_SEC;
		int			overflow = 0;

		if (IS_VALID_TIMESTAMP(local) &&
			timestamp2timestamptz_opt_overflow(local, &overflow) == instant &&
			overflow == 0)
			locals[nlocals++] = local;
	}
	return nlocals;
}

/* The day that a finite timestamp falls on; *midnight: it is its beginning. */
static DateADT
timestamp_day(Timestamp ts, bool *midnight)
{
	int64		day = ts / USECS_PER_DAY;
	int64		rest = ts % USECS_PER_DAY;

	if (rest < 0)
		day--;
	*midnight = rest == 0;
	return (DateADT) day;
}

/* A date column: dates stand for their midnight. */
static bool
date_cast(Oid subtype, Datum value, HybCast *out)
{
	Timestamp	ts;
	DateADT		day;
	DateADT		below;
	DateADT		above;
	int			overflow = 0;
	bool		known = true;

	if (subtype != TIMESTAMPOID && subtype != TIMESTAMPTZOID)
		return false;

	ts = DatumGetTimestamp(value);
	if (TIMESTAMP_NOT_FINITE(ts))
	{
		if (TIMESTAMP_IS_NOBEGIN(ts))
			DATE_NOBEGIN(day);
		else
			DATE_NOEND(day);
		out->lo = out->hi = DateADTGetDatum(day);
		return true;
	}

	if (subtype == TIMESTAMPTZOID)
		known = timestamptz_local(ts, &ts, &overflow);
	day = timestamp_day(ts, &out->exact);
	if (!known)
	{
		out->exact = false;
		below = day + HYB_ZONE_MARGIN_DAYS;
		above = day - HYB_ZONE_MARGIN_DAYS;
	}
	else if (overflow > 0)
	{
		/* Dates too late for a timestamp lie above every finite one */
		out->exact = false;
		below = TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE - 1;
		above = below + 1;
	}
	else if (overflow < 0)
	{
		out->exact = false;
		DATE_NOBEGIN(below);
		above = DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE;
	}
	else
	{
		below = day;
		above = out->exact ? day : day + 1;
	}
	out->lo = DateADTGetDatum(below);
	out->hi = DateADTGetDatum(above);
	return true;
}

static int
date_equals(Oid subtype, Datum value, Datum *equal)
{
	Timestamp	locals[HYB_MAX_EQUALS];
	int			nlocals;
	int			n = 0;

	if (subtype != TIMESTAMPTZOID ||
		TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(value)))
		return -1;
	nlocals = timestamptz_locals(DatumGetTimestampTz(value), locals);
	for (int i = 0; i < nlocals; i++)
	{
		bool		midnight;
		DateADT		day = timestamp_day(locals[i], &midnight);

		if (midnight)
			equal[n++] = DateADTGetDatum(day);
	}
	return nlocals < 0 ? -1 : n;
}

static bool
timestamp_cast(Oid subtype, Datum value, HybCast *out)
{
	Timestamp	ts;
	int			overflow = 0;

	switch (subtype)
	{
		case DATEOID:
			ts = date2timestamp_opt_overflow(DatumGetDateADT(value),
											 &overflow);
			break;
		case TIMESTAMPTZOID:
			ts = DatumGetTimestampTz(value);
			if (TIMESTAMP_NOT_FINITE(ts) ||
				timestamptz_local(ts, &ts, &overflow))
				break;
			out->exact = false;
			out->lo = TimestampGetDatum(ts + HYB_ZONE_MARGIN_DAYS * USECS_PER_DAY);
			out->hi = TimestampGetDatum(ts - HYB_ZONE_MARGIN_DAYS * USECS_PER_DAY);
			return true;
		default:
			return false;
	}
	timestamp_position(ts, overflow, out);
	return true;
}

static int
timestamp_equals(Oid subtype, Datum value, Datum *equal)
{
	Timestamp	locals[HYB_MAX_EQUALS];
	int			n;

	if (subtype != TIMESTAMPTZOID ||
		TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(value)))
		return -1;
	n = timestamptz_locals(DatumGetTimestampTz(value), locals);
	for (int i = 0; i < n; i++)
		equal[i] = TimestampGetDatum(locals[i]);
	return n;
}

static bool
timestamptz_cast(Oid subtype, Datum value, HybCast *out)
{
	TimestampTz ts;
	int			overflow = 0;

	switch (subtype)
	{
		case TIMESTAMPOID:
			ts = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(value),
													&overflow);
			break;
		case DATEOID:
			ts = date2timestamptz_opt_overflow(DatumGetDateADT(value),
											   &overflow);
			break;
		default:
			return false;
	}
	timestamp_position(ts, overflow, out);
	return true;
}

const HybCodec hyb_codec_date =
HYB_INT_CODEC("date", 4, HYB_COMPARE_MEM, date_to_int, date_from_int,
			  date_cast,
			  .equals = date_equals);

const HybCodec hyb_codec_time =
HYB_INT_CODEC("time", 8, HYB_COMPARE_MEM, time_to_int, time_from_int, NULL);

const HybCodec hyb_codec_timestamp =
HYB_INT_CODEC("timestamp", 8, HYB_COMPARE_MEM, time_to_int, time_from_int,
			  timestamp_cast,
			  .equals = timestamp_equals);

const HybCodec hyb_codec_timestamptz =
HYB_INT_CODEC("timestamptz", 8, HYB_COMPARE_MEM, time_to_int, time_from_int,
			  timestamptz_cast);
