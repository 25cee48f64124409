"""Django's database backend, for hybrid indexes: ENGINE = "hybrid_django".

Django finds the index to drop when a field loses db_index among those of type
"idx", and to it only btree indexes are.
"""
from django.db.backends.postgresql import base, introspection


class DatabaseIntrospection(introspection.DatabaseIntrospection):
    def get_constraints(self, cursor, table_name):
        constraints = super().get_constraints(cursor, table_name)
        for constraint in constraints.values():
            if constraint.get("type") == "hybrid":
                constraint["type"] = "idx"
        return constraints


class DatabaseWrapper(base.DatabaseWrapper):
    introspection_class = DatabaseIntrospection
