"""An application with SQLAlchemy, migrated by what Alembic generates for it.
sqlalchemy_app.py DATABASE"""
import os
import sys
import uuid

from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import (BigInteger, CheckConstraint, Column, Computed, Date, DateTime, ForeignKey,
                        ForeignKeyConstraint, Index, Integer, MetaData, Numeric, PrimaryKeyConstraint, String, Table,
                        Text, UniqueConstraint, Uuid, create_engine, desc, func, inspect, select, text)
from sqlalchemy.dialects.postgresql import ExcludeConstraint, INT4RANGE, insert
from sqlalchemy.exc import IntegrityError

from common import refused, show_database

NAMES = {"ix": "ix_%(column_0_N_label)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s",
         "fk": "fk_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}


def schema(changed):
    """The tables, before and after their migration."""
    m = MetaData(naming_convention=NAMES)
    key = BigInteger if changed else Integer
    account = Table(
        "account", m,
        Column("id", key, primary_key=True),
        Column("email", String(100 if changed else 50), nullable=False, unique=True),
        Column("name", Text, index=not changed),
        Column("region", Integer, index=changed),
        Column("balance", Numeric(12, 2), server_default="0"),
        Column("created", DateTime(timezone=True)),
        Column("lower_name", Text, Computed("lower(name)", persisted=True)),
        UniqueConstraint("region", "name", name="account_region_name", deferrable=True, initially="DEFERRED"),
    )
    Index("account_lower", func.lower(account.c.email), unique=True)
    Index("account_pattern", account.c.email, postgresql_ops={"email": "varchar_pattern_ops"})
    Index("account_partial", account.c.name, unique=True, postgresql_where=account.c.region > 90)
    Index("account_desc", desc(account.c.created).nulls_last(), account.c.id)
    Index("account_covering", account.c.region, postgresql_include=["balance"],
          postgresql_with={"fillfactor": 70})
    if changed:
        Index("account_balance", account.c.balance, account.c.region.desc())
        account.append_constraint(UniqueConstraint("balance", "email"))
    else:
        Index("account_old", account.c.region, account.c.balance)
        account.append_constraint(UniqueConstraint("created", "email"))

    Table("device", m, Column("id", Uuid, primary_key=True),
          Column("owner", key, ForeignKey("account.id", ondelete="CASCADE"), index=True),
          Column("backup", key, ForeignKey("account.id", ondelete="SET NULL", deferrable=True,
                                           initially="DEFERRED")),
          Column("serial", String(20)),
          UniqueConstraint("serial", name="device_serial", postgresql_nulls_not_distinct=True))
    Table("line", m, Column("account", key, ForeignKey("account.id")), Column("number", Integer),
          Column("what", Text), PrimaryKeyConstraint("account", "number"),
          CheckConstraint("number > 0", name="line_number"))
    Table("detail", m, Column("id", key, primary_key=True), Column("account", key), Column("number", Integer),
          Column("parent", key, ForeignKey("detail.id")),
          ForeignKeyConstraint(["account", "number"], ["line.account", "line.number"], onupdate="CASCADE",
                               ondelete="SET NULL"))
    Table("tagged", m, Column("account", key, ForeignKey("account.id"), primary_key=True),
          Column("device", Uuid, ForeignKey("device.id"), primary_key=True))
    Table("booking", m, Column("id", Integer, primary_key=True), Column("room", Text),
          Column("during", INT4RANGE), Column("day", Date),
          ExcludeConstraint(("room", "="), using="btree", name="booking_room_btree"),
          ExcludeConstraint(("during", "&&"), using="gist", name="booking_gist"))
    if changed:
        Table("added", m, Column("code", String(3), primary_key=True),
              Column("device", Uuid, ForeignKey("device.id"), unique=True))
    else:
        Table("removed", m, Column("id", Integer, primary_key=True), Column("email", String(50), unique=True))
    return m


def fill(c, m):
    account, device, line, detail = (m.tables[t] for t in ("account", "device", "line", "detail"))
    c.execute(account.insert(), [{"email": f"User{i}@x.org", "name": f"name{i}", "region": i % 7, "balance": i,
                                  "created": f"2026-01-{i % 28 + 1:02} 00:00+00"} for i in range(1, 201)])
    c.execute(device.insert(), [{"id": uuid.UUID(int=i * 7919), "owner": i, "backup": i + 1, "serial": f"s{i}"}
                                for i in range(1, 101)])
    c.execute(line.insert(), [{"account": i % 40 + 1, "number": i // 40 + 1, "what": f"w{i}"} for i in range(200)])
    c.execute(detail.insert(), [{"id": i, "account": i % 40 + 1, "number": 2, "parent": i - 1 or None}
                                for i in range(1, 81)])
    c.execute(m.tables["tagged"].insert(), [{"account": i, "device": uuid.UUID(int=i * 7919)} for i in range(1, 11)])


def upserts(engine, m):
    account, line = m.tables["account"], m.tables["line"]
    with engine.begin() as c:
        new = insert(account).values([{"email": f"User{i}@x.org", "name": "upserted" if i == 206 else f"up{i}", "region": 50 + i}
                                      for i in range(190, 211)])
        print(c.execute(new.on_conflict_do_update(
            index_elements=["email"], set_={"balance": new.excluded.region},
            where=account.c.balance > 195).returning(account.c.email, account.c.balance)).all())
        print(c.execute(insert(account).values(email="uSER7@x.org", region=1).on_conflict_do_nothing(
            index_elements=[func.lower(account.c.email)])).rowcount)
        print(c.execute(insert(account).values(email="new@x.org", name="upserted", region=246).on_conflict_do_update(
            index_elements=["name"], index_where=account.c.region > 90,
            set_={"balance": 77}).returning(account.c.id > 0, account.c.email)).all())
        print(c.execute(insert(line).values(account=1, number=1, what="again").on_conflict_do_update(
            constraint="pk_line", set_={"what": "again"}).returning(line.c.what)).all())
        print(c.execute(insert(line).values(account=1, number=1).on_conflict_do_nothing()).rowcount)
        print(c.execute(select(account.c.id, account.c.name).where(account.c.email.like("User1%")).order_by(
            desc(account.c.created).nulls_last(), account.c.id).limit(5)).all())
    for statement in ("INSERT INTO account (email) VALUES ('user9@X.org')",
                      "INSERT INTO line VALUES (9999, 1)",
                      "UPDATE account SET id = 17 WHERE id = 18",
                      "UPDATE account SET region = 3, name = 'name3' WHERE id = 20",
                      "INSERT INTO booking (room) VALUES ('a'), ('a')",
                      "INSERT INTO device (id, serial) VALUES (gen_random_uuid(), 's1')"):
        def execute(statement=statement):
            with engine.begin() as c:
                c.execute(text(statement))
        refused(execute, IntegrityError)
    with engine.begin() as c:
        c.execute(text("UPDATE account SET region = 3, name = 'name3' WHERE id = 20"))
        c.execute(text("UPDATE account SET name = 'other' WHERE id = 3"))


def context(c):
    return MigrationContext.configure(c, opts={"compare_type": True, "transaction_per_migration": True})


def migrate(engine, to, title, operations=None):
    """To these tables, as Alembic generates it, which sees no difference then."""
    with engine.begin() as c:
        ctx = context(c)
        for ops in (operations or produce_migrations(ctx, to).upgrade_ops).ops:
            for op in getattr(ops, "ops", [ops]):
                Operations(ctx).invoke(op)
    with engine.begin() as c:
        show_database(c.connection.cursor(), title)
        print("differences:", compare_metadata(context(c), to))
        reflected = MetaData()
        reflected.reflect(c)
        print(sorted(i["name"] for t in reflected.tables for i in inspect(c).get_indexes(t)
                     if "duplicates_constraint" not in i))
        print(sorted(u["name"] for t in reflected.tables for u in inspect(c).get_unique_constraints(t)))


def by_hand(engine):
    """Operations that Alembic does not generate."""
    with engine.connect() as c:
        ctx = context(c)
        op = Operations(ctx)
        with ctx.begin_transaction(_per_migration=True):
            op.rename_table("device", "gadget")
            op.alter_column("gadget", "serial", new_column_name="number", type_=Text())
            op.alter_column("account", "email", type_=Text())
            op.execute("ALTER INDEX account_desc RENAME TO account_created")
            op.execute("ALTER TABLE account ADD CONSTRAINT account_lower_name EXCLUDE (lower_name WITH =, id WITH =)")
            op.create_unique_constraint("account_name_id", "account", ["name", "id"], deferrable=True)
            op.drop_constraint("pk_tagged", "tagged")
            op.add_column("tagged", Column("id", Integer, primary_key=True))
            op.create_primary_key("pk_tagged", "tagged", ["device", "account"])
            op.create_index("account_pair", "account", [text("lower(name)"), "region"], unique=True,
                            postgresql_where=text("id > 0"))
            op.create_foreign_key("tagged_pair", "tagged", "account", ["account"], ["id"], source_schema=None)
            with ctx.autocommit_block():
                op.create_index("account_concurrent", "account", ["balance", "id"], postgresql_concurrently=True)
                op.drop_index("account_covering", postgresql_concurrently=True, if_exists=True)
        c.commit()
    with engine.begin() as c:
        show_database(c.connection.cursor(), "by hand")


engine = create_engine(f"postgresql+psycopg://app@/{sys.argv[1]}?host={os.environ['PGHOST']}&port={os.environ['PGPORT']}")
before, after = schema(False), schema(True)
with engine.begin() as c:
    before.create_all(c)
    fill(c, before)
    print("differences:", compare_metadata(context(c), before))
upserts(engine, before)
with engine.begin() as c:
    script = produce_migrations(context(c), after)
migrate(engine, after, "upgraded", script.upgrade_ops)
migrate(engine, before, "downgraded", script.upgrade_ops.reverse())
migrate(engine, after, "again")
by_hand(engine)
with engine.begin() as c:
    everything = MetaData()
    everything.reflect(c)
    everything.drop_all(c)
    show_database(c.connection.cursor(), "nothing")
print("done")
