import uuid

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.contrib.postgres.indexes import BTreeIndex
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Lower, Upper


def author_fields():
    return [
        ("id", models.AutoField(primary_key=True)),
        ("name", models.CharField(max_length=100, db_index=True)),
        ("email", models.CharField(max_length=100, unique=True)),
        ("slug", models.SlugField()),
        ("notes", models.TextField(db_index=True, default="")),
        ("born", models.DateField(null=True)),
        ("address", models.GenericIPAddressField(null=True, db_index=True)),
    ]


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel("Country", [
            ("code", models.CharField(max_length=2, primary_key=True)),
            ("name", models.CharField(max_length=50, unique=True)),
        ]),
        migrations.CreateModel("Author", author_fields(), options={
            "indexes": [
                models.Index(fields=["-born", "name"], name="author_born"),
                models.Index(Upper("name"), name="author_upper"),
                models.Index(fields=["born"], name="author_covering", include=["email"],
                             condition=Q(email__gt="")),
                models.Index(fields=["email"], name="author_pattern", opclasses=["varchar_pattern_ops"]),
                BTreeIndex(fields=["slug"], name="author_slug_btree"),
            ],
            "constraints": [
                models.UniqueConstraint(Lower("email"), name="author_lower_email"),
                models.UniqueConstraint(fields=["name"], condition=Q(born__isnull=True), name="author_unborn"),
                models.CheckConstraint(condition=~Q(name=""), name="author_named"),
            ],
        }),
        migrations.CreateModel("Publisher", [
            ("id", models.UUIDField(primary_key=True, default=uuid.uuid4)),
            ("name", models.CharField(max_length=50)),
            ("country", models.ForeignKey("shop.Country", models.PROTECT)),
            ("parent", models.ForeignKey("self", models.SET_NULL, null=True)),
        ]),
        migrations.CreateModel("Tag", [
            ("id", models.BigAutoField(primary_key=True)),
            ("word", models.CharField(max_length=30, unique=True)),
        ]),
        migrations.CreateModel("Book", [
            ("id", models.AutoField(primary_key=True)),
            ("title", models.CharField(max_length=100)),
            ("isbn", models.CharField(max_length=13, unique=True)),
            ("edition", models.IntegerField(default=1)),
            ("sold", models.BigIntegerField(default=0, db_index=True)),
            ("shelf", models.IntegerField(null=True)),
            ("author", models.ForeignKey("shop.Author", models.CASCADE)),
            ("editor", models.ForeignKey("shop.Author", models.RESTRICT, null=True, related_name="+")),
            ("reader", models.ForeignKey("shop.Author", models.SET_DEFAULT, null=True, default=None,
                                         related_name="+")),
            ("printer", models.ForeignKey("shop.Author", models.DO_NOTHING, null=True, related_name="+")),
            ("publisher", models.ForeignKey("shop.Publisher", models.CASCADE)),
            ("tags", models.ManyToManyField("shop.Tag")),
        ], options={
            "unique_together": {("title", "edition")},
            "constraints": [
                models.UniqueConstraint(fields=["shelf"], name="book_shelf",
                                        deferrable=models.Deferrable.DEFERRED),
                models.UniqueConstraint(fields=["isbn", "shelf"], name="book_nulls", nulls_distinct=False),
                models.UniqueConstraint(fields=["isbn"], name="book_include", include=["title"]),
            ],
        }),
        migrations.CreateModel("Cover", [
            ("book", models.OneToOneField("shop.Book", models.CASCADE, primary_key=True)),
            ("during", DateTimeRangeField(null=True)),
        ], options={
            "constraints": [ExclusionConstraint(name="cover_gist", expressions=[("during", RangeOperators.OVERLAPS)])],
        }),
        migrations.CreateModel("Stock", [
            ("pk", models.CompositePrimaryKey("country", "number", blank=True, editable=False, primary_key=True,
                                              serialize=False)),
            ("country", models.ForeignKey("shop.Country", models.CASCADE)),
            ("number", models.IntegerField()),
        ]),
    ]
