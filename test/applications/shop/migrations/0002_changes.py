from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        # types of keys that are referenced
        migrations.AlterField("Author", "id", models.BigAutoField(primary_key=True)),
        migrations.AlterField("Book", "id", models.BigAutoField(primary_key=True)),
        migrations.AlterField("Country", "code", models.CharField(max_length=5, primary_key=True)),
        migrations.AlterField("Country", "name", models.TextField(unique=True)),
        # indexes that come and go with their fields
        migrations.AlterField("Author", "name", models.CharField(max_length=100)),
        migrations.AlterField("Author", "notes", models.TextField(unique=False, default="")),
        migrations.AlterField("Author", "slug", models.SlugField(unique=True)),
        migrations.AlterField("Book", "sold", models.IntegerField(default=0)),
        migrations.AlterField("Book", "edition", models.BigIntegerField(default=1, db_index=True)),
        migrations.AlterField("Tag", "word", models.CharField(max_length=40, db_index=True)),
        migrations.AddField("Book", "token", models.UUIDField(null=True, unique=True)),
        migrations.AddField("Tag", "parent", models.ForeignKey("shop.Tag", models.CASCADE, null=True)),
        migrations.RemoveConstraint("Author", "author_unborn"),
        migrations.RenameField("Book", "publisher", "house"),
        migrations.RenameIndex("Author", new_name="author_birthday", old_name="author_born"),
        migrations.RemoveIndex("Author", "author_upper"),
        migrations.AddConstraint("Author", models.UniqueConstraint(
            Lower("name"), "born", name="author_name_born", condition=Q(born__isnull=False))),
        migrations.RemoveConstraint("Book", "book_nulls"),
        migrations.AlterUniqueTogether("Book", {("title", "edition", "house")}),
        migrations.RemoveField("Author", "address"),
        migrations.RenameModel("Cover", "Jacket"),
        migrations.AddField("Country", "capital", models.OneToOneField("shop.Publisher", models.SET_NULL, null=True,
                                                                       related_name="+")),
    ]
