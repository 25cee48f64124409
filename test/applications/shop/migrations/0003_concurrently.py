from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0002_changes")]
    operations = [
        AddIndexConcurrently("Book", models.Index(fields=["title", "-id"], name="book_title")),
        RemoveIndexConcurrently("Author", "author_covering"),
        # as for a field that had an index and gets it back
        migrations.AlterField("Book", "sold", models.IntegerField(default=0, db_index=True)),
        migrations.AlterField("Book", "sold", models.IntegerField(default=0)),
    ]
