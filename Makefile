# hybridindex: an index access method for PostgreSQL (PGXS)
#
#   make && make install
#   make installcheck        regression and isolation tests, running server
#   make prove_installcheck  TAP tests, own clusters

EXTENSION = hybridindex
MODULE_big = hybridindex
DATA = $(wildcard hybridindex--*.sql)
OBJS = $(patsubst %.c,%.o,$(wildcard src/*/*.c))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --inputdir=.
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ISOLATION_OPTS = --inputdir=.
TAP_TESTS = 1

PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -std=gnu99

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
