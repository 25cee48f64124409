"""A Django application: its migrations, forth, back and forth again, and what
it does meanwhile.  django_app.py ENGINE DATABASE"""
import contextlib
import io
import os
import sys
import uuid

import django
from django.conf import settings

from common import refused, show_database

settings.configure(
    INSTALLED_APPS=["django.contrib.postgres", "django.contrib.contenttypes", "django.contrib.auth", "shop"],
    DATABASES={"default": {
        "ENGINE": sys.argv[1], "NAME": sys.argv[2], "USER": "app",
        "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
    }},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.migrations.executor import MigrationExecutor  # noqa: E402


def migrate(to):
    """The models as they are after this migration."""
    call_command("migrate", "shop", to, verbosity=0)
    with connection.cursor() as cursor:
        show_database(cursor, f"at {to}")
    if to == "zero":
        return None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call_command("inspectdb", verbosity=0)
    print(out.getvalue())
    loader = MigrationExecutor(connection).loader
    name = next(n for a, n in loader.graph.nodes if a == "shop" and n.startswith(to))
    return loader.project_state([("shop", name)]).apps


def fill(apps):
    Country, Author, Publisher, Tag, Book, Cover, Stock = (
        apps.get_model("shop", m) for m in ("Country", "Author", "Publisher", "Tag", "Book", "Cover", "Stock"))
    Country.objects.bulk_create([Country(code=c, name=c * 2) for c in ("de", "fr", "jp")])
    authors = [Author(id=i, name=f"name{i}", email=f"User{i}@x.org", slug=f"s{i}",
                      born=f"19{i:02}-01-01" if i % 3 else None) for i in range(1, 41)]
    Author.objects.bulk_create(authors)
    houses = [Publisher(id=uuid.UUID(int=i), name=f"house{i}", country_id="de") for i in range(1, 4)]
    Publisher.objects.bulk_create(houses)
    tags = [Tag.objects.get_or_create(word=f"tag{i % 5}")[0] for i in range(10)]
    books = [Book(id=i, title=f"title{i}", isbn=f"{i:013}", author=authors[i % 20], editor=authors[35],
                  reader=authors[i % 7 + 20], shelf=i, publisher=houses[i % 3]) for i in range(1, 61)]
    Book.objects.bulk_create(books)
    for book in books:
        book.tags.set(tags[:book.id % 4])
    Cover.objects.bulk_create([Cover(book=b) for b in books[:5]])
    Stock.objects.bulk_create([Stock(country_id=c, number=n) for c in ("de", "fr") for n in range(4)])


def upserts(apps):
    Country, Author, Book = (apps.get_model("shop", m) for m in ("Country", "Author", "Book"))
    Country.objects.bulk_create([Country(code="de", name="no"), Country(code="it", name="itit")],
                                ignore_conflicts=True)
    Country.objects.bulk_create([Country(code="de", name="Germany"), Country(code="es", name="Spain")],
                                update_conflicts=True, unique_fields=["code"], update_fields=["name"])
    Author.objects.bulk_create([Author(id=900, name="upserted", email="User1@x.org", slug="up")],
                               update_conflicts=True, unique_fields=["email"], update_fields=["name"])
    Book.objects.update_or_create(isbn="0000000000003", defaults={"title": "third"})
    print(Author.objects.filter(email__startswith="User1").order_by("email").values_list("email", "name"))
    print(Author.objects.filter(name__in=["name3", "name4"], book__title__startswith="t").distinct().count())
    print(Book.objects.select_related("author").filter(id__gt=50).order_by("-id").values_list("id", "author__name")[:3])

    def atomically(action):
        with transaction.atomic():
            action()
    refused(lambda: atomically(lambda: Author.objects.create(name="x", email="uSER1@x.org", slug="x")), IntegrityError)
    refused(lambda: atomically(lambda: Author.objects.filter(id=5).update(email="User6@x.org")), IntegrityError)
    refused(lambda: atomically(lambda: Book.objects.filter(id=5).update(shelf=6)), IntegrityError)
    refused(lambda: atomically(lambda: Book.objects.filter(id=5).update(author=12345)), IntegrityError)
    with transaction.atomic():
        Book.objects.filter(id=5).update(shelf=6)
        Book.objects.filter(id=6).update(shelf=5)


def delete(apps):
    """What the historical models do not know is the server's to refuse."""
    Country, Author, Publisher = (apps.get_model("shop", m) for m in ("Country", "Author", "Publisher"))
    refused(lambda: Author.objects.filter(id=36).delete(), models.RestrictedError)
    refused(lambda: Country.objects.filter(code="de").delete(), models.ProtectedError)
    Author.objects.filter(id__in=[3, 4, 22]).delete()
    Publisher.objects.filter(id=uuid.UUID(int=1)).delete()
    Country.objects.filter(code="fr").delete()


call_command("migrate", "auth", verbosity=0)
state = migrate("0001")
fill(state)
upserts(state)
state = migrate("0002")
delete(state)
migrate("0003")
migrate("0002")
migrate("0001")
migrate("0003")
migrate("zero")
call_command("flush", interactive=False, verbosity=0)
print("done")
