# hybridindex: an index access method for PostgreSQL (PGXS)
#
#   make && make install
#   make installcheck        regression and isolation tests, running server
#   make prove_installcheck  TAP tests, which start their own servers: not as root
#   make dist                archive of the last commit, for PGXN

EXTENSION = hybridindex
MODULE_big = hybridindex
DATA = $(notdir $(wildcard $(srcdir)/hybridindex--*.sql))
DOCS = $(patsubst $(srcdir)/%,%,$(sort $(wildcard $(srcdir)/docs/*.md)))
OBJS = $(patsubst $(srcdir)/%.c,%.o,$(wildcard $(srcdir)/src/*/*.c $(srcdir)/src/*/*/*.c))
SHLIB_LINK += -lm -llz4

REGRESS = $(patsubst $(srcdir)/sql/%.sql,%,$(sort $(wildcard $(srcdir)/sql/*.sql)))

# Specs that hold sessions at injection points need a server that has them.
SPECS = $(sort $(wildcard $(srcdir)/specs/*.spec))
HELD_SPECS = $(shell grep -l injection_points $(SPECS))
HAS_POINTS = $(wildcard $(datadir)/extension/injection_points.control)
ISOLATION = $(patsubst $(srcdir)/specs/%.spec,%,$(if $(HAS_POINTS),$(SPECS),$(filter-out $(HELD_SPECS),$(SPECS))))
ISOLATION_OPTS = --load-extension=hybridindex

PG_CPPFLAGS = -I$(srcdir)/src
# The server finds only what PGDLLEXPORT marks.  Other functions call each other
# directly, and not through the linkage table.
PG_CFLAGS = $(if $(filter 15 16 17 18,$(MAJORVERSION)),-std=gnu99) -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers -fvisibility=hidden -MMD -MP
EXTRA_CLEAN = tmp_check $(OBJS:.o=.d) src/preload.o src/preload.d src/preload.so

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Documents have a directory of their own, since extensions may use the same names.
docmoduledir := hybridindex
# PGXS installs all documents in one directory, and does not remove those that come
# from a subdirectory.
GUIDE = $(wildcard $(srcdir)/docs/guide/*.md)
PROMETHEUS = $(wildcard $(srcdir)/docs/guide/prometheus/*)
guidedir = $(DESTDIR)$(docdir)/$(docmoduledir)/guide
.PHONY: install_guide uninstall_docs
install: install_guide
install_guide:
	$(MKDIR_P) '$(guidedir)/prometheus'
	$(INSTALL_DATA) $(GUIDE) '$(guidedir)/'
	$(INSTALL_DATA) $(PROMETHEUS) '$(guidedir)/prometheus/'
uninstall: uninstall_docs
uninstall_docs:
	rm -f $(addprefix '$(guidedir)'/, $(notdir $(GUIDE)) $(addprefix prometheus/, $(notdir $(PROMETHEUS))))
	rm -f $(addprefix '$(DESTDIR)$(docdir)/$(docmoduledir)'/, $(notdir $(DOCS)))
	-rmdir '$(guidedir)/prometheus' '$(guidedir)' '$(DESTDIR)$(docdir)/$(docmoduledir)'

# Any role may load what lies in $libdir/plugins: src/preload.c loads the library.
PRELOAD = src/preload$(DLSUFFIX)
plugindir = $(DESTDIR)$(pkglibdir)/plugins
.PHONY: install_preload uninstall_preload
all: $(PRELOAD)
src/preload.o: override CFLAGS += -fvisibility=default
install: install_preload
install_preload: $(PRELOAD)
	$(MKDIR_P) '$(plugindir)'
	$(INSTALL_SHLIB) $< '$(plugindir)/$(MODULE_big)$(DLSUFFIX)'
uninstall: uninstall_preload
uninstall_preload:
	rm -f '$(plugindir)/$(MODULE_big)$(DLSUFFIX)'
	-rmdir '$(plugindir)'

# loops over the five estimates of each bit, as the server does for checksums
src/algo/inorder.o: CFLAGS += $(CFLAGS_UNROLL_LOOPS)

# which headers an object needs, the compiler says
$(OBJS) src/preload.o: $(srcdir)/Makefile
-include $(OBJS:.o=.d) src/preload.d
ifdef VPATH
$(shell mkdir -p $(sort $(dir $(OBJS))))
endif

# hybrid_version() and pg_get_loaded_modules() tell the version of the release.
HYB_VERSION := $(shell sed -n '/"name"/,/"provides"/s/.*"version": "\(.*\)".*/\1/p' $(srcdir)/META.json)
src/am/handler.o src/am/handler.bc: $(srcdir)/META.json
src/am/handler.o src/am/handler.bc: override CPPFLAGS += -DHYB_VERSION='"$(HYB_VERSION)"'

# What tells builds of the library apart that meet in one server, by the name of
# the control structure (src/shared/shared.c): a checksum of all sources, of the
# macros that they are compiled with, and of the version.  If these are equal, so
# are the objects.
SOURCES = $(sort $(wildcard $(srcdir)/src/*/*.[ch] $(srcdir)/src/*/*/*.[ch]))
MACROS = $(filter -D% -U%,$(CPPFLAGS) $(CFLAGS))
HYB_SOURCES := $(shell { cat $(SOURCES); printf '%s' '$(HYB_VERSION)$(subst ','\'',$(MACROS))'; } | cksum | tr ' ' -)
src/shared/shared.o src/shared/shared.bc: $(SOURCES) $(srcdir)/META.json
src/shared/shared.o src/shared/shared.bc: override CPPFLAGS += -DHYB_SOURCES='"$(HYB_SOURCES)"'

RELEASE = hybridindex-$(HYB_VERSION)
.PHONY: dist
dist:
	git -C $(srcdir) archive --format=zip --prefix=$(RELEASE)/ --output='$(CURDIR)/$(RELEASE).zip' HEAD

# what is left out of installcheck for want of injection points
.PHONY: skipped_specs
skipped_specs:
	@echo $(if $(HAS_POINTS),,$(patsubst $(srcdir)/specs/%.spec,%,$(HELD_SPECS)))

# PGXS would run TAP_TESTS in installcheck; unlike the rest they cannot run as
# root, nor against a server that runs already.
.PHONY: prove_installcheck
prove_installcheck:
	rm -rf '$(CURDIR)/tmp_check'
	cd $(srcdir) && TESTDIR='$(CURDIR)' TESTDATADIR='$(CURDIR)/tmp_check' TESTLOGDIR='$(CURDIR)/tmp_check/log' PATH="$(bindir):$$PATH" PGPORT='6$(DEF_PGPORT)' \
		PG_REGRESS='$(top_builddir)/src/test/regress/pg_regress' \
		prove -I $(top_srcdir)/src/test/perl -I . $(PROVE_FLAGS) \
		$(or $(PROVE_TESTS),$(sort $(wildcard t/*.pl)))
